//! Decides which earlier counters a heartbeat's counters are compared with.

use crate::node::heartbeat::received::StoredReport;
use control_wire::{BundleId, InstanceId};
use jiff::Timestamp;

/// Process and bundle that the counters belong to, and the time of their report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSource {
    seen_at: Timestamp,
    active: Option<BundleId>,
    instance: Option<InstanceId>,
}

/// Counters to subtract from those of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterBasis {
    /// Counters of the previous report.
    Stored,
    /// Zero: another bundle became active, or another process took over.
    Zero,
    /// Unknown: the node was silent for long, or two processes report as it. The requests are not
    /// counted.
    Unknown,
}

impl From<&StoredReport> for CounterSource {
    fn from(report: &StoredReport) -> Self {
        Self {
            seen_at: report.seen_at,
            active: report.status.active,
            instance: report.instance,
        }
    }
}

impl CounterBasis {
    /// The basis for the counters of the report `after`. If the previous report is older than
    /// `oldest`, the times of the requests are unknown.
    pub fn new(before: CounterSource, after: &StoredReport, oldest: Timestamp) -> Self {
        let next = CounterSource::from(after);
        if before.seen_at < oldest || after.duplicate.is_some() {
            return Self::Unknown;
        }
        if before.active == next.active && before.instance == next.instance {
            Self::Stored
        } else {
            Self::Zero
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::DuplicateNode;
    use control_wire::NodeStatus;
    use uuid::Uuid;

    fn report(seen_secs: i64, bundle: u128, process: u128) -> StoredReport {
        StoredReport {
            seen_at: Timestamp::from_second(seen_secs).unwrap(),
            version: None,
            instance: Some(InstanceId(Uuid::from_u128(process))),
            earlier_instances: Vec::new(),
            duplicate: None,
            status: NodeStatus {
                active: Some(BundleId(Uuid::from_u128(bundle))),
                ..NodeStatus::default()
            },
            diverged_at: None,
            confirmed: None,
        }
    }

    #[test]
    fn counters_are_compared_with_those_of_the_same_process_and_bundle() {
        let before = CounterSource::from(&report(1_000, 1, 1));
        let oldest = |secs| Timestamp::from_second(secs).unwrap();
        for (after, expected) in [
            (report(1_030, 1, 1), CounterBasis::Stored),
            (report(1_030, 2, 1), CounterBasis::Zero),
            (report(1_030, 1, 2), CounterBasis::Zero),
        ] {
            assert_eq!(CounterBasis::new(before, &after, oldest(400)), expected);
        }
        let after = report(2_000, 1, 1);
        let late = CounterBasis::new(before, &after, oldest(1_001));
        assert_eq!(late, CounterBasis::Unknown, "silent for too long");
        let duplicate = DuplicateNode {
            since: after.seen_at,
            seen_at: after.seen_at,
        };
        let after = StoredReport {
            duplicate: Some(duplicate),
            ..after
        };
        let twice = CounterBasis::new(before, &after, oldest(400));
        assert_eq!(twice, CounterBasis::Unknown, "two processes");
    }
}
