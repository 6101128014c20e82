//! Applies a heartbeat to the node's stored report: duplicates, divergence, confirmation.

use crate::node::{DUPLICATE_MEMORY, DuplicateNode};
use control_wire::{BundleId, HeartbeatRequest, InstanceId, NodeStatus, Verdict};
use jiff::Timestamp;

/// Maximum number of stored processes apart from the one that reported last.
const MAX_EARLIER_INSTANCES: usize = 8;
/// Minimum number of returns of an earlier process that shows that both run. A single return
/// may be a late last heartbeat.
const MAX_RETURNS: usize = 2;

/// Stored report of a node, without its counters, which affect no decision.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredReport {
    /// Time of the last heartbeat; 1970 before the first.
    pub seen_at: Timestamp,
    /// The version of the proxy.
    pub version: Option<String>,
    /// The process that reported last.
    pub instance: Option<InstanceId>,
    /// Processes that reported earlier, newest first; alternating ones occur repeatedly.
    pub earlier_instances: Vec<InstanceId>,
    /// Two processes with one identity.
    pub duplicate: Option<DuplicateNode>,
    /// Reported bundles and verdict.
    pub status: NodeStatus,
    /// Time since which the active bundle differs from the order, or from its signed files.
    pub diverged_at: Option<Timestamp>,
    /// Last active bundle that an order had named: without this check, a node could claim any
    /// bundle.
    pub confirmed: Option<BundleId>,
}

/// Newest order of a node, and its answers to earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedBundles {
    /// Counter of the newest order.
    pub counter: i64,
    /// Bundle of the newest order.
    pub bundle: BundleId,
    /// Bundle of the last order for a different bundle.
    pub previous: Option<BundleId>,
    /// Counter of the newest confirmed order for the bundle that the node reports as active.
    pub confirmed_counter: Option<i64>,
    /// Counter of the newest rejected order for the ordered bundle.
    pub rejected_counter: Option<i64>,
}

/// Change to the stored counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficChange {
    /// The stored counters are kept.
    Kept,
    /// The heartbeat's counters replace the stored ones, which belong to another bundle; without
    /// new ones, none remain.
    Replaced,
}

/// A node's answer to an order, for its history of bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleAnswer {
    /// Bundle of the answered order.
    pub bundle: BundleId,
    /// Counter of that order.
    pub counter: i64,
}

/// Effects of a heartbeat.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedReport {
    /// Report to store.
    pub report: StoredReport,
    /// Change to the stored counters.
    pub traffic: TrafficChange,
    /// Newly confirmed: a bundle that the node now runs by an order.
    pub confirmed: Option<BundleAnswer>,
    /// Newly rejected bundle.
    pub rejected: Option<BundleAnswer>,
    /// True if this heartbeat revealed a second process with the node's identity.
    pub has_found_duplicate: bool,
    /// True if the report to store differs only in its time; counters are ignored.
    pub is_unchanged: bool,
}

impl StoredReport {
    /// Applies a heartbeat; omitted fields keep their values.
    #[must_use]
    pub fn receive(
        self,
        order: Option<OrderedBundles>,
        heartbeat: &HeartbeatRequest,
        now: Timestamp,
    ) -> ReceivedReport {
        let HeartbeatRequest {
            health: _, // Kept by time alone.
            version,
            status,
            traffic,
            instance,
        } = heartbeat;
        let before = self.clone();
        let mut report = self;
        report.seen_at = now;
        report.version = version.clone().or(report.version);
        let has_found_duplicate = instance.is_some_and(|process| report.take_turn(process, now));
        let mut change = match traffic {
            Some(_) => TrafficChange::Replaced,
            None => TrafficChange::Kept,
        };
        let (mut confirmed, mut rejected) = (None, None);
        if let Some(status) = status {
            if report.status.active != status.active {
                change = TrafficChange::Replaced;
            }
            report.status = status.clone();
            report.compare(order, now);
            confirmed = order.and_then(|order| report.newly_confirmed(order));
            rejected = order.and_then(|order| report.newly_rejected(order));
        }
        let is_unchanged = report
            == StoredReport {
                seen_at: now,
                ..before
            };
        ReceivedReport {
            is_unchanged: is_unchanged && confirmed.is_none() && rejected.is_none(),
            report,
            traffic: change,
            confirmed,
            rejected,
            has_found_duplicate,
        }
    }

    /// Records the reporting process; returns true if a second process is detected for the first
    /// time.
    fn take_turn(&mut self, process: InstanceId, now: Timestamp) -> bool {
        let Some(last) = self.instance.replace(process) else {
            return false;
        };
        if last == process {
            return false;
        }
        let earlier = self.earlier_instances.iter();
        let returns = earlier.filter(|one| **one == process).count();
        self.earlier_instances.insert(0, last);
        self.earlier_instances.truncate(MAX_EARLIER_INSTANCES);
        if returns < MAX_RETURNS {
            return false;
        }
        let known = self.duplicate;
        let since = known.filter(|known| now - DUPLICATE_MEMORY < known.seen_at);
        let since = since.map_or(now, |known| known.since);
        self.duplicate = Some(DuplicateNode {
            since,
            seen_at: now,
        });
        since == now
    }

    /// Compares the active bundle with the order. A bundle edited on the disk differs from every
    /// order.
    fn compare(&mut self, order: Option<OrderedBundles>, now: Timestamp) {
        let active = self.status.active;
        let diverges =
            order.is_some_and(|order| active != Some(order.bundle) || self.status.altered);
        self.diverged_at = diverges.then(|| self.diverged_at.unwrap_or(now));
        let named = |order: OrderedBundles| {
            active.filter(|active| *active == order.bundle || Some(*active) == order.previous)
        };
        self.confirmed = order.and_then(named).or(self.confirmed);
    }

    /// The active bundle, if an order named it and its confirmation is not recorded yet. The order
    /// may be the previous one, which the newest does not confirm.
    fn newly_confirmed(&self, order: OrderedBundles) -> Option<BundleAnswer> {
        let bundle = self
            .confirmed
            .filter(|one| self.status.active == Some(*one))?;
        let is_newest = bundle == order.bundle;
        let counter = order.counter - i64::from(!is_newest);
        let known = order.confirmed_counter;
        let is_new = known.is_none_or(|known| known < counter && is_newest);
        is_new.then_some(BundleAnswer { bundle, counter })
    }

    fn newly_rejected(&self, order: OrderedBundles) -> Option<BundleAnswer> {
        let answered = self
            .status
            .order
            .and_then(|order| i64::try_from(order).ok());
        let is_rejected = self.status.verdict == Some(Verdict::Rejected);
        let OrderedBundles {
            counter, bundle, ..
        } = order;
        let is_new = order.rejected_counter.is_none_or(|known| known < counter);
        (is_rejected && is_new && answered == Some(counter))
            .then_some(BundleAnswer { bundle, counter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_wire::Health;
    use jiff::SignedDuration;
    use uuid::Uuid;

    const NOW: Timestamp = Timestamp::constant(1_700_000_000, 0);

    fn after(secs: i64) -> Timestamp {
        NOW + SignedDuration::from_secs(secs)
    }

    fn bundle(number: u128) -> BundleId {
        BundleId(Uuid::from_u128(number))
    }

    fn stored() -> StoredReport {
        StoredReport {
            seen_at: NOW,
            version: Some("1".to_owned()),
            instance: None,
            earlier_instances: Vec::new(),
            duplicate: None,
            status: NodeStatus::default(),
            diverged_at: None,
            confirmed: None,
        }
    }

    fn bare() -> HeartbeatRequest {
        HeartbeatRequest {
            health: Health { cpu_percent: 1.0 },
            version: None,
            status: None,
            traffic: None,
            instance: None,
        }
    }

    fn runs(active: u128) -> HeartbeatRequest {
        let status = NodeStatus {
            active: Some(bundle(active)),
            ..NodeStatus::default()
        };
        HeartbeatRequest {
            status: Some(status),
            ..bare()
        }
    }

    fn order(counter: i64, named: u128, previous: Option<u128>) -> OrderedBundles {
        OrderedBundles {
            counter,
            bundle: bundle(named),
            previous: previous.map(bundle),
            confirmed_counter: None,
            rejected_counter: None,
        }
    }

    #[test]
    fn only_bundles_of_orders_are_confirmed() {
        // Columns: active bundle; confirmed bundle, its order, and whether the node diverges.
        let cases = [
            (2, Some(2), Some(5), false),
            (1, Some(1), Some(4), true),
            (9, None, None, true),
        ];
        for (active, confirmed, counter, diverges) in cases {
            let received = stored().receive(Some(order(5, 2, Some(1))), &runs(active), after(1));
            let report = received.report;
            assert_eq!(report.confirmed, confirmed.map(bundle), "{active}");
            let answered = received.confirmed.map(|answer| answer.counter);
            assert_eq!(answered, counter, "{active}");
            assert_eq!(report.diverged_at.is_some(), diverges, "{active}");
        }
        let known = OrderedBundles {
            confirmed_counter: Some(5),
            ..order(5, 2, None)
        };
        let again = stored().receive(Some(known), &runs(2), after(1));
        assert_eq!(again.confirmed, None);
        let unordered = stored().receive(None, &runs(2), after(1));
        assert_eq!(unordered.report.diverged_at, None);
    }

    #[test]
    fn a_divergence_keeps_its_beginning_until_it_ends() {
        let ordered = Some(order(5, 2, None));
        let first = stored().receive(ordered, &runs(9), after(1)).report;
        let second = first.receive(ordered, &runs(8), after(2)).report;
        assert_eq!(second.diverged_at, Some(after(1)));
        let bare = second.receive(ordered, &bare(), after(3)).report;
        assert_eq!(
            bare.diverged_at,
            Some(after(1)),
            "it says nothing of bundles"
        );
        let last = bare.receive(ordered, &runs(2), after(4)).report;
        assert_eq!(last.diverged_at, None);
    }

    #[test]
    fn an_altered_bundle_diverges_until_it_is_restored() {
        let ordered = Some(order(5, 2, None));
        let mut heartbeat = runs(2);
        heartbeat.status.get_or_insert_default().altered = true;
        let altered = stored().receive(ordered, &heartbeat, after(1)).report;
        assert_eq!(altered.diverged_at, Some(after(1)));
        let restored = altered.receive(ordered, &runs(2), after(2));
        assert_eq!(restored.report.diverged_at, None);
        assert!(!restored.is_unchanged);
    }

    #[test]
    fn counters_of_another_bundle_go() {
        let known = stored().receive(None, &runs(1), after(1)).report;
        let traffic =
            |heartbeat: &HeartbeatRequest| known.clone().receive(None, heartbeat, after(2)).traffic;
        assert_eq!(traffic(&runs(1)), TrafficChange::Kept);
        assert_eq!(traffic(&runs(2)), TrafficChange::Replaced);
        assert_eq!(traffic(&bare()), TrafficChange::Kept);
    }

    #[test]
    fn a_rejection_is_of_the_newest_order() {
        let mut heartbeat = runs(1);
        for (answered, rejected) in [(5, Some(5)), (4, None)] {
            let status = heartbeat.status.get_or_insert_default();
            (status.order, status.verdict) = (Some(answered), Some(Verdict::Rejected));
            let received = stored().receive(Some(order(5, 2, Some(1))), &heartbeat, after(1));
            let counter = received.rejected.map(|answer| answer.counter);
            assert_eq!(counter, rejected, "{answered}");
        }
    }

    #[test]
    fn two_processes_that_take_turns_are_noticed_once() {
        let mut report = stored();
        let mut noticed = Vec::new();
        for (process, secs) in [1, 2, 1, 2, 1, 2, 1].into_iter().zip(1..) {
            let heartbeat = HeartbeatRequest {
                instance: Some(InstanceId(Uuid::from_u128(process))),
                ..bare()
            };
            let received = report.receive(None, &heartbeat, after(secs));
            noticed.push(received.has_found_duplicate);
            assert!(!received.is_unchanged);
            report = received.report;
        }
        assert_eq!(noticed, [false, false, false, false, true, false, false]);
        let duplicate = report.duplicate.map(|found| (found.since, found.seen_at));
        assert_eq!(duplicate, Some((after(5), after(7))));
    }
}
