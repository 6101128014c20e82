//! The order of queued writes.

use control_wire::OrgId;
use std::collections::{BTreeMap, VecDeque};

/// Queued writes. Those without an organization go first; organizations take turns for the rest.
#[derive(Debug)]
pub(super) struct Turns<W> {
    first: VecDeque<W>,
    by_org: BTreeMap<OrgId, VecDeque<W>>,
    /// Organizations with queued writes, next one first.
    order: VecDeque<OrgId>,
}

impl<W> Default for Turns<W> {
    fn default() -> Self {
        Self {
            first: VecDeque::new(),
            by_org: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<W> Turns<W> {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.order.is_empty()
    }

    pub(super) fn add(&mut self, org: Option<OrgId>, write: W) {
        let Some(org) = org else {
            self.first.push_back(write);
            return;
        };
        let own = self.by_org.entry(org).or_default();
        if own.is_empty() {
            self.order.push_back(org);
        }
        own.push_back(write);
    }

    /// Takes up to `max` writes. While organizations wait, a quarter of `max` is reserved for them.
    pub(super) fn take(&mut self, max: usize) -> Vec<W> {
        let share = if self.order.is_empty() {
            max
        } else {
            max - max / 4
        };
        let count = share.min(self.first.len());
        let mut taken: Vec<W> = self.first.drain(..count).collect();
        while taken.len() < max
            && let Some(org) = self.order.pop_front()
        {
            let Some(own) = self.by_org.get_mut(&org) else {
                continue;
            };
            taken.extend(own.pop_front());
            if own.is_empty() {
                self.by_org.remove(&org);
            } else {
                self.order.push_back(org);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn org(number: u128) -> OrgId {
        OrgId(Uuid::from_u128(number))
    }

    #[test]
    fn a_flood_of_one_organization_holds_up_no_other() {
        let mut turns = Turns::default();
        for number in 0..1_000 {
            turns.add(Some(org(1)), (1, number));
        }
        for other in [2, 3] {
            turns.add(Some(org(other)), (other, 0));
            turns.add(Some(org(other)), (other, 1));
        }
        let taken = turns.take(7);
        assert_eq!(
            taken,
            [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 1), (1, 2)]
        );
        assert_eq!(turns.take(2_000).len(), 997);
        assert!(turns.is_empty() && turns.by_org.is_empty());
    }

    #[test]
    fn writes_of_no_organization_go_first_and_leave_a_quarter() {
        let mut turns = Turns::default();
        for number in 0..10 {
            turns.add(Some(org(1)), (1, number));
            turns.add(None, (0, number));
        }
        let firsts = |taken: &[(u128, usize)]| taken.iter().filter(|(org, _)| *org == 0).count();
        let taken = turns.take(8);
        assert_eq!((taken.len(), firsts(&taken)), (8, 6));
        let taken = turns.take(8);
        assert_eq!((taken.len(), firsts(&taken)), (8, 4));
    }
}
