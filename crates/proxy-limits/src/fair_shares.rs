//! Fair shares of a limit that runs short: dynamic thresholds.

use crate::client_key::{ClientKey, KeySeed};
use std::collections::HashMap;
use std::hash::Hash;

/// Use of a limit when one more unit is requested, which is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Units held.
    pub held: u32,
    /// Configured maximum of units.
    pub max: u32,
}

impl Occupancy {
    /// Units that are not held: 0 at the maximum.
    #[must_use]
    #[inline]
    pub const fn free(self) -> u32 {
        self.max.saturating_sub(self.held)
    }

    /// Returns true if half of the units or more are held, so that the rest is shared.
    #[must_use]
    #[inline]
    pub const fn is_short(self) -> bool {
        self.free() <= self.held
    }
}

/// Destination of a request, by numbers that stay the same from plan to plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// Number of the route, stable across plans.
    pub route: u64,
    /// The upstream of the route; a number unique to the route without one.
    pub upstream: u64,
}

/// The three holders that a request's unit counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The route and the upstream.
    pub destination: Destination,
    /// Client that sent the request.
    pub client: ClientKey,
}

/// A part of a destination that has a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Route(u64),
    Upstream(u64),
}

/// Counted units of a route or an upstream.
#[derive(Clone, Copy, Debug, Default)]
struct PartUse {
    units: u32,
    /// Distinct clients that hold them.
    clients: u32,
}

/// The use of a limit, to check whether a claim may have one more unit.
#[derive(Clone, Copy, Debug)]
pub struct ShareCheck<'a> {
    /// Units of each holder.
    pub shares: &'a FairShares,
    /// Units of the limit that are not held.
    pub free: u32,
}

/// Free units that allow a holder one more unit each.
const WEIGHT: u32 = 8;

/// Units that a holder may have while any unit is free.
const MIN_SHARE: u32 = 16;

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
/// - Each released unit raises the threshold for all holders equally.
#[must_use]
pub const fn fair_share(free: u32) -> u32 {
    let share = free.saturating_mul(WEIGHT);
    if share < MIN_SHARE { MIN_SHARE } else { share }
}

/// Minimum average of units for each client that makes the clients of a route or an upstream
/// greedy.
const GREEDY_UNITS: u32 = 2;

/// Units of each holder that were taken while a limit was short.
///
/// The first half of a limit of `C` units is given to the first requests and counted for no holder,
/// so that a limit with room costs one comparison. The `F = C / 2` units above are given by
/// [`fair_share`]: a single holder gets at most `C / 2 + 8/9 × C / 2` of all units and leaves `C /
/// 18`, 55 of 1 000; with limits of at most 32 units it gets all. A unit that was taken in the
/// first half stays uncounted until it is released.
///
/// Each request has three holders, its route, its upstream and its client, and needs room in the
/// shares of all three. One client that uses up its own share uses up its route's at the same time.
/// So a route or an upstream without a free share still admits clients with few units of it: a
/// client may have `k` units if `k` for each client of the route are fewer than the free ones. With
/// 55 of 1 000 units free after one greedy client, a second client gets 18. A route that is filled
/// by 55 clients or more, each with few units, admits none: its target hangs. Where the clients
/// have two units or more on average, they are greedy, and the route admits one unit for each
/// client that has none of it, up to twice the share: 26 such clients, which leave 29 of 1 000
/// units free.
///
/// The tables have at most five entries for each counted unit, and are empty while the limit has
/// room.
#[derive(Debug)]
pub struct FairShares {
    parts: HashMap<Part, PartUse, KeySeed>,
    clients: HashMap<ClientKey, u32, KeySeed>,
    clients_of_parts: HashMap<(Part, ClientKey), u32, KeySeed>,
}

impl FairShares {
    /// An empty table. `seed` prevents clients from choosing addresses with colliding hashes.
    #[must_use]
    pub fn new(seed: KeySeed) -> Self {
        Self {
            parts: HashMap::with_hasher(seed),
            clients: HashMap::with_hasher(seed),
            clients_of_parts: HashMap::with_hasher(seed),
        }
    }

    /// Returns true if each holder of `claim` may have one more unit while `free` are free.
    #[must_use]
    pub fn admits(&self, claim: Claim, free: u32) -> bool {
        let Claim {
            destination,
            client,
        } = claim;
        let held = self.clients.get(&client).copied().unwrap_or_default();
        free > 0
            && held < fair_share(free)
            && parts(destination)
                .into_iter()
                .all(|part| self.part_admits(part, client, free))
    }

    /// Returns true if any client may have one more unit of the route and of the upstream: false
    /// only if [`Self::admits`] would be false for all clients.
    #[must_use]
    pub fn may_admit(&self, destination: Destination, free: u32) -> bool {
        free > 0
            && parts(destination).iter().all(|part| {
                self.parts
                    .get(part)
                    .is_none_or(|held| held.has_room(free) || held.admits_client(0, free))
            })
    }

    /// Counts one unit.
    pub fn enter(&mut self, claim: Claim) {
        let Claim {
            destination,
            client,
        } = claim;
        *self.clients.entry(client).or_default() += 1;
        for part in parts(destination) {
            let client_share = self.clients_of_parts.entry((part, client)).or_default();
            *client_share += 1;
            let held = self.parts.entry(part).or_default();
            held.units += 1;
            held.clients += u32::from(*client_share == 1);
        }
    }

    /// Releases one unit that was counted for the same claim.
    pub fn leave(&mut self, claim: Claim) {
        let Claim {
            destination,
            client,
        } = claim;
        release(&mut self.clients, &client);
        for part in parts(destination) {
            let was_last = release(&mut self.clients_of_parts, &(part, client));
            let Some(held) = self.parts.get_mut(&part) else {
                continue;
            };
            held.units = held.units.saturating_sub(1);
            held.clients = held.clients.saturating_sub(u32::from(was_last));
            if held.units == 0 {
                self.parts.remove(&part);
            }
        }
    }

    /// Returns true if no unit is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.clients.is_empty() && self.clients_of_parts.is_empty()
    }

    fn part_admits(&self, part: Part, client: ClientKey, free: u32) -> bool {
        let Some(held) = self.parts.get(&part) else {
            return true;
        };
        held.has_room(free) || {
            let client_share = self.clients_of_parts.get(&(part, client));
            held.admits_client(client_share.copied().unwrap_or_default(), free)
        }
    }
}

impl PartUse {
    /// Returns true if the holder's share is not used up.
    const fn has_room(self, free: u32) -> bool {
        self.units < fair_share(free)
    }

    /// Returns true if a client that holds `client_share` of these units may have one more after
    /// the share is used up.
    fn admits_client(self, client_share: u32, free: u32) -> bool {
        let is_new = client_share == 0;
        let clients = self.clients.saturating_add(u32::from(is_new));
        client_share.saturating_add(1).saturating_mul(clients) < free
            || is_new
                && self.has_greedy_clients()
                && self.units < fair_share(free).saturating_mul(2)
    }

    /// Returns true if the clients hold many units each: they use up the share, not a slow target.
    const fn has_greedy_clients(self) -> bool {
        self.clients.saturating_mul(GREEDY_UNITS) <= self.units
    }
}

impl ShareCheck<'_> {
    pub(crate) fn admits(&self, claim: Claim) -> bool {
        self.shares.admits(claim, self.free)
    }

    pub(crate) fn may_admit(&self, destination: Destination) -> bool {
        self.shares.may_admit(destination, self.free)
    }
}

const fn parts(destination: Destination) -> [Part; 2] {
    let Destination { route, upstream } = destination;
    [Part::Route(route), Part::Upstream(upstream)]
}

/// Takes one from the count of `key`. True if it was the last one.
pub(crate) fn release<K: Eq + Hash>(counts: &mut HashMap<K, u32, KeySeed>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else {
        return false;
    };
    *count = count.saturating_sub(1);
    let was_last = *count == 0;
    if was_last {
        counts.remove(key);
    }
    was_last
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
    use std::collections::HashSet;

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
    fn one_client_leaves_units_of_its_route_and_its_upstream_to_other_clients() {
        for (alike, first, later) in [
            (claim(1, 1, 8), 18, [9, 5, 3]),
            (claim(2, 1, 8), 18, [9, 5, 3]),
        ] {
            let mut limit = Limit::new(1_000);
            let greedy = (0..5_000).filter(|_| limit.take(claim(1, 1, 7)));
            assert_eq!(greedy.count(), 945);

            let mut served = |client| {
                let client = ClientKey::V4(client);
                (0..100)
                    .filter(|_| limit.take(Claim { client, ..alike }))
                    .count()
            };
            assert_eq!(served(8), first);
            assert_eq!([9, 10, 11].map(&mut served), later);
            // Each of them holds its maximum, and other routes have room.
            assert_eq!(served(7), 0);
            assert_eq!(served(8), 0);
            assert!(limit.take(claim(3, 3, 12)));
        }
    }

    #[test]
    fn ten_heavy_clients_of_a_route_leave_units_to_an_eleventh() {
        let mut limit = Limit::new(1_000);
        for round in 0..20_000_u32 {
            limit.take(claim(1, 1, round % 10));
        }
        assert_eq!(limit.free(), 55);

        let served = (0..100).filter(|_| limit.take(claim(1, 1, 99)));
        assert_eq!(served.count(), 4);
    }

    #[test]
    fn a_hundred_heavy_clients_of_a_route_leave_units_to_other_clients_and_routes() {
        for greedy in [55, 60, 100] {
            let mut limit = Limit::new(1_000);
            for round in 0..20_000_u32 {
                limit.take(claim(1, 1, round % greedy));
            }
            assert_eq!(limit.free(), 55, "{greedy}");
            assert!(!limit.take(claim(1, 1, 0)), "{greedy}");

            let served = (1_000..1_100).filter(|client| limit.take(claim(1, 1, *client)));
            assert_eq!(served.count(), 26, "{greedy}");
            // One unit each, and none for the greedy ones.
            assert!(!limit.take(claim(1, 1, 1_000)), "{greedy}");
            assert!(!limit.take(claim(1, 1, 0)), "{greedy}");
            let others = (0..30).filter(|_| limit.take(claim(2, 2, 9_999)));
            assert_eq!(others.count(), 26, "{greedy}");
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
    fn a_released_unit_can_be_acquired_again() {
        let mut limit = Limit::new(1_000);
        while limit.take(claim(1, 1, 1)) {}
        let last = limit.taken.len() - 1;

        limit.release(last);

        assert!(limit.take(claim(1, 1, 1)));
        assert!(!limit.take(claim(1, 1, 1)));
    }

    /// The same decision, from a list of all counted units.
    fn admits_plainly(counted: &[Claim], claim: Claim, free: u32) -> bool {
        let count = |is_alike: &dyn Fn(&Claim) -> bool| {
            let alike: Vec<_> = counted.iter().filter(|other| is_alike(other)).collect();
            let clients: HashSet<_> = alike.iter().map(|other| other.client).collect();
            let own = alike.iter().filter(|other| other.client == claim.client);
            (alike.len(), clients.len(), own.count())
        };
        let free = usize::try_from(free).unwrap();
        let share = (8 * free).max(16);
        let (client_share, ..) = count(&|other| other.client == claim.client);
        let (route, upstream) = (claim.destination.route, claim.destination.upstream);
        let of_parts = [
            count(&|other| other.destination.route == route),
            count(&|other| other.destination.upstream == upstream),
        ];
        let mut of_parts = of_parts.into_iter();
        free > 0
            && client_share < share
            && of_parts.all(|(units, clients, own)| {
                let is_greedy = 2 * clients <= units;
                let clients = if own == 0 { clients + 1 } else { clients };
                units < share
                    || (own + 1) * clients < free
                    || own == 0 && is_greedy && units < 2 * share
            })
    }

    proptest! {
        #[test]
        fn the_tables_decide_as_a_list_of_all_units_does(
            max in 1_u32..150,
            steps in prop::collection::vec(
                (0_u64..3, 0_u64..2, 0_u32..6, any::<usize>(), 1_usize..30), 1..40),
        ) {
            let mut limit = Limit::new(max);
            for (route, upstream, client, pick, repeat) in steps {
                if pick % 3 == 0 && !limit.taken.is_empty() {
                    limit.release(pick % limit.taken.len());
                }
                for _ in 0..repeat {
                    let before = limit.occupancy();
                    let claim = claim(route, upstream, client);
                    let counted: Vec<_> = limit.taken.iter().flatten().copied().collect();
                    let expected = !before.is_short()
                        || admits_plainly(&counted, claim, before.free());
                    let may_admit = limit.shares.may_admit(claim.destination, before.free());
                    prop_assert_eq!(limit.take(claim), expected);
                    let is_short = before.is_short();
                    prop_assert!(may_admit || !expected || !is_short);
                }
            }
        }

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
