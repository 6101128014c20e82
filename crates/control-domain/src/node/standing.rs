//! Standing of a node towards its order, in one word.

use crate::named::named;
use crate::node::{HeartbeatInterval, Node, NodeState};
use control_wire::Verdict;
use jiff::Timestamp;

named! {
    /// Standing of a node towards its order. Its own word counts, as of its last heartbeat.
    NodeStanding {
        /// It runs the bundle that it was ordered to run.
        AsOrdered = "as_ordered",
        /// It has a newer order without an answer.
        Moving = "moving",
        /// It runs another bundle than the ordered one, or that one was edited on its disk, and a drift is open.
        Drifted = "drifted",
        /// It rejected its order, and runs its former bundle.
        Refused = "refused",
        /// It is online and has no order.
        Unordered = "unordered",
        /// It missed three heartbeats.
        Silent = "silent",
        /// Registered, without a heartbeat yet.
        Enrolled = "enrolled",
    }
}

impl Node {
    /// Standing of the node; `has_drift` is set while it has an open drift.
    pub fn standing(
        &self,
        has_drift: bool,
        interval: HeartbeatInterval,
        now: Timestamp,
    ) -> NodeStanding {
        match self.state(interval, now) {
            NodeState::Enrolled => return NodeStanding::Enrolled,
            NodeState::Offline | NodeState::Deleted => return NodeStanding::Silent,
            NodeState::Online => {}
        }
        let Some(order) = self.order else {
            return NodeStanding::Unordered;
        };
        let status = self.report.as_ref().map(|report| &report.status);
        let active = status.and_then(|status| status.active);
        let is_answer =
            |answered: u64| i64::try_from(answered).is_ok_and(|own| own == order.counter);
        let is_answered = status
            .and_then(|status| status.order)
            .is_some_and(is_answer);
        let verdict = status.and_then(|status| status.verdict);
        if active == Some(order.bundle) && !has_drift {
            NodeStanding::AsOrdered
        } else if is_answered && verdict == Some(Verdict::Rejected) {
            NodeStanding::Refused
        } else if has_drift {
            NodeStanding::Drifted
        } else {
            NodeStanding::Moving
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Tenant;
    use crate::labels::Labels;
    use crate::node::{NodeReport, OrderSummary};
    use crate::text::Name;
    use control_wire::{BundleId, NodeId, NodeStatus, OrgId, ProjectId};
    use uuid::Uuid;

    const NOW: Timestamp = Timestamp::constant(1_000_000, 0);

    fn node(order: Option<i64>, report: Option<NodeReport>) -> Node {
        let bundle = BundleId(Uuid::from_u128(1));
        Node {
            id: NodeId(Uuid::nil()),
            tenant: Tenant::project(OrgId(Uuid::nil()), ProjectId(Uuid::nil())),
            name: Name::stored("fra-1".to_owned()),
            labels: Labels::default(),
            requested_labels: None,
            created_at: NOW,
            rotating: false,
            report,
            order: order.map(|counter| OrderSummary {
                counter,
                bundle,
                made_at: NOW,
            }),
        }
    }

    fn report(active: u128, order: u64, verdict: Option<Verdict>) -> NodeReport {
        NodeReport {
            seen_at: NOW,
            cpu_percent: 1.0,
            version: None,
            status: NodeStatus {
                active: Some(BundleId(Uuid::from_u128(active))),
                order: Some(order),
                verdict,
                ..NodeStatus::default()
            },
            traffic: None,
            duplicate: None,
        }
    }

    #[test]
    fn a_standing_follows_from_order_report_and_drift() {
        let interval = HeartbeatInterval::default();
        let accepted = Some(Verdict::Accepted);
        let rejected = Some(Verdict::Rejected);
        let late = NodeReport {
            seen_at: interval.online_since(NOW),
            ..report(1, 7, accepted)
        };
        for (order, reported, has_drift, expected) in [
            (None, None, false, NodeStanding::Enrolled),
            (Some(7), Some(late), false, NodeStanding::Silent),
            (
                None,
                Some(report(1, 7, accepted)),
                false,
                NodeStanding::Unordered,
            ),
            (
                Some(7),
                Some(report(1, 7, accepted)),
                false,
                NodeStanding::AsOrdered,
            ),
            // The files of the bundle were edited on the disk.
            (
                Some(7),
                Some(report(1, 7, accepted)),
                true,
                NodeStanding::Drifted,
            ),
            (
                Some(7),
                Some(report(2, 6, accepted)),
                false,
                NodeStanding::Moving,
            ),
            // The rejected order is an earlier one.
            (
                Some(7),
                Some(report(2, 6, rejected)),
                false,
                NodeStanding::Moving,
            ),
            (
                Some(7),
                Some(report(2, 7, rejected)),
                true,
                NodeStanding::Refused,
            ),
            (
                Some(7),
                Some(report(2, 7, accepted)),
                true,
                NodeStanding::Drifted,
            ),
        ] {
            let node = node(order, reported);
            assert_eq!(
                node.standing(has_drift, interval, NOW),
                expected,
                "{node:?}"
            );
        }
    }
}
