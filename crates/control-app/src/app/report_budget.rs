//! Budgets for reports of nodes (heartbeats and events): token buckets of bytes per node and
//! organization, in this replica.
//!
//! A node's budget is twice its traffic if each heartbeat has the maximum size. An organization's
//! budget covers reports of 100 routes from as many nodes as its quota permits, and at least
//! reports of the maximum size from 64 nodes.

use crate::error::Error;
use control_domain::HeartbeatInterval;
use control_wire::{NodeId, OrgId};
use jiff::Timestamp;
use quick_cache::sync::Cache;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Maximum size of a report: 500 routes with their counters, and 100 diagnostics.
pub const MAX_REPORT_BYTES: usize = 512 * 1024;
const LARGEST_REPORT_BYTES: u64 = MAX_REPORT_BYTES as u64;
/// Maximum debt of a bucket: a batch of events has up to 1 MiB.
const MAX_DEBT_BYTES: u64 = 1024 * 1024;
/// Tolerance for a stored fill time beyond what the largest debt explains. A larger excess comes
/// from a clock that was ahead; a smaller one from a request that overtook another.
const MAX_CLOCK_ERROR_MICROS: i64 = 10_000_000;
/// Size of a report of 100 routes.
const USUAL_REPORT_BYTES: u64 = 10 * 1024;
/// Minimum charge of a report: a small one still costs its SQL statements.
const MIN_REPORT_BYTES: u64 = 4 * 1024;
/// Refill of a node's bucket in one heartbeat interval, in reports of the maximum size.
const NODE_REPORTS: u64 = 2;
/// Burst of a node's bucket, in reports of the maximum size: a restart and an order are reported at
/// once.
const NODE_BURST: u64 = 4;
/// Number of nodes with reports of the largest size that an organization's budget covers.
const LARGE_NODES: u64 = 64;
/// Maximum number of buckets in memory. The least recently used ones are evicted; an evicted bucket counts as full.
const MAX_NODES: usize = 100_000;
const MAX_ORGS: usize = 10_000;

/// The buckets of this replica, for nodes and for organizations.
#[derive(Debug)]
pub(crate) struct ReportBudget {
    by_node: Cache<NodeId, Arc<Bucket>>,
    by_org: Cache<OrgId, Arc<Bucket>>,
}

/// Properties of a report that the buckets depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizedReport {
    pub(crate) node: NodeId,
    pub(crate) org: OrgId,
    /// Quota of nodes of the organization.
    pub(crate) max_nodes: u64,
    pub(crate) bytes: u64,
}

/// Refill and capacity of one bucket.
#[derive(Clone, Copy, Debug)]
struct ByteRate {
    /// Refill in `interval`; at least 1.
    bytes: u64,
    interval: HeartbeatInterval,
    /// Capacity of the bucket, in bytes.
    burst: u64,
}

/// A report is admitted while any bytes are left, so it may leave a debt.
#[derive(Debug, Default)]
struct Bucket {
    /// Time when the bucket is full again, in microseconds since 1970.
    full_at: AtomicI64,
}

impl Default for ReportBudget {
    fn default() -> Self {
        Self {
            by_node: Cache::new(MAX_NODES),
            by_org: Cache::new(MAX_ORGS),
        }
    }
}

impl ReportBudget {
    /// Charges a report to the buckets of its node and its organization.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyReportBytes`] with the owner of the empty bucket.
    pub(crate) fn take(
        &self,
        report: SizedReport,
        interval: HeartbeatInterval,
        now: Timestamp,
    ) -> Result<(), Error> {
        let SizedReport {
            node,
            org,
            max_nodes,
            bytes,
        } = report;
        let bytes = bytes.max(MIN_REPORT_BYTES);
        let new = || Ok::<_, Infallible>(Arc::default());
        let Ok(node_budget) = self.by_node.get_or_insert_with(&node, new);
        // The node's bucket is charged first: a node over its own budget uses none of its
        // organization's.
        node_budget.take(ByteRate::for_node(interval), bytes, now, "node")?;
        let Ok(org_budget) = self.by_org.get_or_insert_with(&org, new);
        let rate = ByteRate::for_org(interval, max_nodes);
        org_budget.take(rate, bytes, now, "organization")
    }
}

impl ByteRate {
    fn for_node(interval: HeartbeatInterval) -> Self {
        Self {
            bytes: NODE_REPORTS * LARGEST_REPORT_BYTES,
            interval,
            burst: NODE_BURST * LARGEST_REPORT_BYTES,
        }
    }

    fn for_org(interval: HeartbeatInterval, max_nodes: u64) -> Self {
        let usual = max_nodes.saturating_mul(USUAL_REPORT_BYTES);
        let bytes = usual.max(LARGE_NODES * LARGEST_REPORT_BYTES);
        Self {
            bytes,
            interval,
            burst: bytes,
        }
    }

    /// Time to refill this number of bytes, in microseconds.
    fn micros(self, bytes: u64) -> i64 {
        let interval = u128::from(self.interval.secs()) * 1_000_000;
        let micros = u128::from(bytes) * interval / u128::from(self.bytes.max(1));
        i64::try_from(micros).unwrap_or(i64::MAX / 4)
    }
}

impl Bucket {
    fn take(
        &self,
        rate: ByteRate,
        bytes: u64,
        now: Timestamp,
        owner: &'static str,
    ) -> Result<(), Error> {
        let (now, burst) = (now.as_microsecond(), rate.micros(rate.burst));
        let latest = now + burst + rate.micros(MAX_DEBT_BYTES);
        let less = |full_at: i64| {
            // A bucket written by a clock that was ahead would refuse reports until that time: it
            // restarts with one byte, so that this report corrects it.
            let full_at = if latest + MAX_CLOCK_ERROR_MICROS < full_at {
                now + burst - 1
            } else {
                full_at.max(now)
            };
            (full_at - now < burst).then(|| full_at + rate.micros(bytes))
        };
        let taken = self
            .full_at
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.map(drop).map_err(|full_at| {
            let wait = full_at.clamp(now, latest) - now - burst;
            Error::TooManyReportBytes {
                owner,
                retry_after_secs: u64::try_from(wait / 1_000_000).unwrap_or_default() + 1,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_domain::Quotas;
    use jiff::SignedDuration;
    use uuid::Uuid;

    const NOW: Timestamp = Timestamp::constant(1_700_000_000, 0);

    fn after(secs: i64) -> Timestamp {
        NOW + SignedDuration::from_secs(secs)
    }

    /// A report of a node of the organization 1.
    fn report(node: u128, bytes: u64, max_nodes: u64) -> SizedReport {
        SizedReport {
            node: NodeId(Uuid::from_u128(node)),
            org: OrgId(Uuid::from_u128(1)),
            max_nodes,
            bytes,
        }
    }

    /// The owner of the empty bucket and the seconds to wait; `None` if the report is admitted.
    fn refused(
        budget: &ReportBudget,
        report: SizedReport,
        now: Timestamp,
    ) -> Option<(&'static str, u64)> {
        match budget.take(report, HeartbeatInterval::default(), now) {
            Err(Error::TooManyReportBytes {
                owner,
                retry_after_secs,
            }) => Some((owner, retry_after_secs)),
            taken => {
                taken.unwrap();
                None
            }
        }
    }

    #[test]
    fn a_node_with_the_largest_reports_in_their_interval_is_never_refused() {
        let budget = ReportBudget::default();
        let interval = i64::from(HeartbeatInterval::default().secs());
        for number in 0..1_000 {
            let reported = refused(
                &budget,
                report(1, LARGEST_REPORT_BYTES, 1),
                after(number * interval),
            );
            assert_eq!(reported, None, "{number}");
        }
    }

    #[test]
    fn a_fleet_of_the_quota_is_never_refused() {
        let budget = ReportBudget::default();
        let max_nodes = Quotas::default().nodes;
        for interval in 0..3 {
            for number in 0..max_nodes {
                let at = after(30 * interval);
                let reported = refused(
                    &budget,
                    report(number.into(), USUAL_REPORT_BYTES, max_nodes),
                    at,
                );
                assert_eq!(reported, None, "{number} in interval {interval}");
            }
        }
    }

    #[test]
    fn a_node_that_sends_more_waits_for_its_own_bucket() {
        let budget = ReportBudget::default();
        let large = |number, now| refused(&budget, report(number, LARGEST_REPORT_BYTES, 1), now);
        for _ in 0..NODE_BURST {
            assert_eq!(large(1, NOW), None);
        }
        assert_eq!(large(1, NOW), Some(("node", 1)));
        assert_eq!(large(2, NOW), None);
        assert_eq!(large(1, after(1)), None, "it owes the rest");
        assert_eq!(large(1, after(1)), Some(("node", 15)));
    }

    #[test]
    fn an_organization_has_a_bucket_for_all_its_nodes() {
        let budget = ReportBudget::default();
        let nodes = 0..2 * u128::from(LARGE_NODES);
        let reported =
            nodes.map(|number| refused(&budget, report(number, LARGEST_REPORT_BYTES, 1), NOW));
        let reported: Vec<_> = reported.flatten().collect();
        assert_eq!(reported.len(), usize::try_from(LARGE_NODES).unwrap());
        assert!(reported.iter().all(|(owner, _)| *owner == "organization"));
        let other = SizedReport {
            org: OrgId(Uuid::from_u128(2)),
            ..report(1_000, LARGEST_REPORT_BYTES, 1)
        };
        assert_eq!(refused(&budget, other, NOW), None);
    }

    #[test]
    fn a_request_that_another_one_overtook_refills_no_bucket() {
        let budget = ReportBudget::default();
        let max_nodes = Quotas::default().nodes;
        let large = |number, now| {
            let report = report(number, LARGEST_REPORT_BYTES, max_nodes);
            refused(&budget, report, now)
        };
        let mut nodes = 0..;
        let used_up = nodes.find(|number| large(*number, after(1)).is_some());
        assert!(used_up.is_some());
        assert!(
            large(100_000, NOW).is_some(),
            "it was received a second before"
        );
        assert!(large(100_001, after(1)).is_some());
    }

    #[test]
    fn a_clock_that_was_ahead_holds_nothing_up_for_longer_than_a_bucket() {
        let budget = ReportBudget::default();
        let ahead = after(3_600);
        for _ in 0..=NODE_BURST {
            refused(&budget, report(1, LARGEST_REPORT_BYTES, 1), ahead);
        }
        let interval = i64::from(HeartbeatInterval::default().secs());
        for number in 0..5 {
            let at = after(number * interval);
            let reported = refused(&budget, report(1, LARGEST_REPORT_BYTES, 1), at);
            assert_eq!(reported, None, "{number}");
        }
        // It is a bucket like the rest: it admits no more than its burst.
        let mut reported = (0..=NODE_BURST).map(|_| {
            let at = after(4 * interval);
            refused(&budget, report(1, LARGEST_REPORT_BYTES, 1), at)
        });
        assert!(reported.any(|refusal| refusal.is_some_and(|(_, secs)| secs <= 31)));
    }
}
