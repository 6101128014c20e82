//! Fair shares of a limit that runs short: dynamic thresholds.

use crate::client_key::{ClientKey, KeySeed};
use std::collections::HashMap;

/// Use of a limit when one more unit is requested, which is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Units held.
    pub held: u32,
    /// The maximum.
    pub max: u32,
}

impl Occupancy {
    /// Units that are not held: 0 at the maximum.
    #[must_use]
    #[inline]
    pub const fn free(self) -> u32 {
        self.max.saturating_sub(self.held)
    }

    /// Whether half of the units or more are held, so that the rest is shared.
    #[must_use]
    #[inline]
    pub const fn is_short(self) -> bool {
        self.free() <= self.held
    }
}

/// Destination of a request, by numbers that stay the same from plan to plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The route.
    pub route: u64,
    /// The upstream of the route; a number of the route alone if it has none.
    pub upstream: u64,
}

/// The three holders that a request's place counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The route and the upstream.
    pub destination: Destination,
    /// The client.
    pub client: ClientKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Route(u64),
    Upstream(u64),
    Client(ClientKey),
}

/// Free units that allow a holder one more unit each.
const WEIGHT: u32 = 8;

/// Units that a holder may have while any unit is free.
const FLOOR: u32 = 16;

/// Units that one holder may have while `free` are free: `max(8 × free, 16)`.
///
/// This is the dynamic threshold of Choudhury and Hahne (1998), with a weight of 8. The threshold falls
/// as units are taken, so a holder stops before the last unit, at a distance that needs no knowledge of
/// the other holders:
///
/// - One holder that takes all it gets of `F` units stops at `q = 8 × (F − q)`. It holds 8/9 of `F`, and
///   `F / 9` stay free.
/// - `n` such holders stop at `q = 8 × (F − n × q)` each. They have equal shares, and `F / (1 + 8 × n)`
///   units stay free.
/// - A holder with fewer than 16 units gets any free unit, so small limits are used up: one holder alone
///   gets all of up to 16 units.
/// - Each released unit raises the threshold for all holders alike.
#[must_use]
pub const fn fair_share(free: u32) -> u32 {
    let share = free.saturating_mul(WEIGHT);
    if share < FLOOR { FLOOR } else { share }
}

/// Units of each holder among those that were taken while a limit was short.
///
/// The first half of a limit of `C` units is given to the first requests and counted for no holder, so
/// that a limit with room costs one comparison. The `F = C / 2` units above are given by [`fair_share`]: a
/// single holder gets at most `C / 2 + 8/9 × C / 2` of all units and leaves `C / 18`, 55 of
/// 1 000; with limits of at most 32 units it gets all. A unit that was taken in the first half stays
/// uncounted until it is released.
///
/// Each request has three holders, its route, its upstream and its client, and needs room in the shares of
/// all three. The table has at most three entries for each counted unit, and is empty while the limit has
/// room.
#[derive(Debug)]
pub struct FairShares {
    counts: HashMap<Holder, u32, KeySeed>,
}

impl FairShares {
    /// An empty table. `seed` prevents clients from choosing addresses with colliding hashes.
    #[must_use]
    pub fn new(seed: KeySeed) -> Self {
        Self {
            counts: HashMap::with_hasher(seed),
        }
    }

    /// Whether each holder of `claim` may have one more unit while `free` are free.
    #[must_use]
    pub fn admits(&self, claim: Claim, free: u32) -> bool {
        self.admits_destination(claim.destination, free) && self.admits_client(claim.client, free)
    }

    /// Whether the route and the upstream may have one more unit.
    #[must_use]
    pub fn admits_destination(&self, destination: Destination, free: u32) -> bool {
        let Destination { route, upstream } = destination;
        self.admits_holder(Holder::Route(route), free)
            && self.admits_holder(Holder::Upstream(upstream), free)
    }

    /// Whether the client may have one more unit.
    #[must_use]
    pub fn admits_client(&self, client: ClientKey, free: u32) -> bool {
        self.admits_holder(Holder::Client(client), free)
    }

    /// Counts one unit.
    pub fn enter(&mut self, claim: Claim) {
        for holder in holders(claim) {
            *self.counts.entry(holder).or_default() += 1;
        }
    }

    /// Releases one unit that was counted for the same claim.
    pub fn leave(&mut self, claim: Claim) {
        for holder in holders(claim) {
            let Some(count) = self.counts.get_mut(&holder) else {
                continue;
            };
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.counts.remove(&holder);
            }
        }
    }

    /// Whether no unit is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    fn admits_holder(&self, holder: Holder, free: u32) -> bool {
        let held = self.counts.get(&holder).copied().unwrap_or_default();
        free > 0 && held < fair_share(free)
    }
}

const fn holders(claim: Claim) -> [Holder; 3] {
    let Claim {
        destination: Destination { route, upstream },
        client,
    } = claim;
    [
        Holder::Route(route),
        Holder::Upstream(upstream),
        Holder::Client(client),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    /// A limit of `max` units with the units that were taken: `None` is not counted.
    struct Limit {
        max: u32,
        shares: FairShares,
        taken: Vec<Option<Claim>>,
    }

    impl Limit {
        fn new(max: u32) -> Self {
            Self {
                max,
                shares: FairShares::new(KeySeed { low: 1, high: 2 }),
                taken: Vec::new(),
            }
        }

        fn free(&self) -> u32 {
            self.occupancy().free()
        }

        fn occupancy(&self) -> Occupancy {
            Occupancy {
                held: u32::try_from(self.taken.len()).unwrap(),
                max: self.max,
            }
        }

        fn take(&mut self, claim: Claim) -> bool {
            let before = self.occupancy();
            if !before.is_short() {
                self.taken.push(None);
                return true;
            }
            let admitted = self.shares.admits(claim, before.free());
            if admitted {
                self.shares.enter(claim);
                self.taken.push(Some(claim));
            }
            admitted
        }

        fn release(&mut self, position: usize) {
            if let Some(claim) = self.taken.swap_remove(position) {
                self.shares.leave(claim);
            }
        }
    }

    fn claim(route: u64, upstream: u64, client: u32) -> Claim {
        Claim {
            destination: Destination { route, upstream },
            client: ClientKey::V4(client),
        }
    }

    #[test]
    fn one_route_with_many_clients_leaves_an_eighteenth_to_the_others() {
        let mut limit = Limit::new(1_000);
        let served = (0..5_000).filter(|client| limit.take(claim(1, 1, *client)));

        assert_eq!(served.count(), 945);
        // A second holder that takes all it gets leaves some of the 55 in its turn.
        let others = (0..55).filter(|_| limit.take(claim(2, 2, 9_999)));
        assert_eq!(others.count(), 49);
    }

    #[test]
    fn one_client_on_many_routes_and_one_upstream_of_many_leave_as_much() {
        for alike in [
            |n| claim(n, n, 7),
            |n| claim(n, 7, u32::try_from(n).unwrap()),
        ] {
            let mut limit = Limit::new(1_000);
            let served = (0..5_000).filter(|number| limit.take(alike(*number)));

            assert_eq!(served.count(), 945);
        }
    }

    #[test]
    fn greedy_holders_have_equal_shares_and_leave_room() {
        for holders in [2_u32, 3, 5] {
            let mut limit = Limit::new(2_000);
            let mut counted = vec![0_u32; usize::try_from(holders).unwrap()];
            for round in 0..20_000_u32 {
                let holder = round % holders;
                let was_short = limit.occupancy().is_short();
                if limit.take(claim(holder.into(), holder.into(), holder)) && was_short {
                    counted[usize::try_from(holder).unwrap()] += 1;
                }
            }
            let expected = 1_000 / (1 + 8 * holders);
            assert!(limit.free().abs_diff(expected) <= holders, "{counted:?}");
            let most = counted.iter().max().unwrap();
            assert!(most - counted.iter().min().unwrap() <= 1, "{counted:?}");
        }
    }

    #[test]
    fn a_small_limit_is_used_up_by_one_holder() {
        for max in 1..=32 {
            let mut limit = Limit::new(max);
            assert!((0..max).all(|_| limit.take(claim(1, 1, 1))), "{max}");
            assert!(!limit.take(claim(2, 2, 2)));
        }
    }

    #[test]
    fn a_released_unit_lets_its_holder_take_another() {
        let mut limit = Limit::new(1_000);
        while limit.take(claim(1, 1, 1)) {}
        let last = limit.taken.len() - 1;

        limit.release(last);

        assert!(limit.take(claim(1, 1, 1)));
        assert!(!limit.take(claim(1, 1, 1)));
    }

    proptest! {
        #[test]
        fn a_holder_of_few_gets_any_free_unit_and_counts_end_at_none(
            max in 1_u32..300,
            steps in prop::collection::vec((0_u64..4, 0_u64..3, 0_u32..5, any::<usize>()), 1..600),
        ) {
            let mut limit = Limit::new(max);
            for (route, upstream, client, pick) in steps {
                if pick % 4 == 0 && !limit.taken.is_empty() {
                    limit.release(pick % limit.taken.len());
                }
                limit.take(claim(route, upstream, client));
                prop_assert!(limit.taken.len() <= usize::try_from(max).unwrap());
                prop_assert_eq!(limit.shares.admits(claim(8, 8, 8), limit.free()), limit.free() > 0);
            }
            while !limit.taken.is_empty() {
                limit.release(0);
            }
            prop_assert!(limit.shares.is_empty());
        }
    }
}
