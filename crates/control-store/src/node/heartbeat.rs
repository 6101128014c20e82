//! Heartbeats: reads the stored report, lets the domain decide, and writes the changes.
//!
//! A heartbeat without changes is not written in its own transaction: the caller gathers such
//! heartbeats and writes them together, because SQLite writes whole pages.

use crate::error::StoreError;
use crate::node::order::{confirmation, read_confirmation};
use crate::node::{to_json, verdict_name, verdict_of};
use crate::row::traffic::{packed, stored_counts};
use crate::row::{
    number, optional_id, optional_json, optional_number, optional_text, optional_time, time,
};
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::{
    BundleAnswer, CounterBasis, CounterSource, DuplicateNode, OrderedBundles, ReceivedReport,
    RouteCounts, StoredReport, TrafficChange,
};
use control_wire::{BundleId, Confirmation, HeartbeatRequest, InstanceId, NodeId, NodeStatus};
use jiff::{SignedDuration, Timestamp};
use sqlx::any::AnyRow;

/// Maximum number of confirmed bundles kept per node, as candidates for reverts.
const MAX_CONFIRMED: i64 = 100;
/// Maximum time between two reports with a counted difference. After a longer silence, the time
/// of the requests is unknown.
const MAX_SILENCE: SignedDuration = SignedDuration::from_mins(10);
/// Tolerance for wrong clocks: a stored time later than the received one by more than this comes
/// from a clock that was ahead, or the receiver's is behind. Quiet heartbeats are written up to 38
/// seconds late.
const MAX_CLOCK_ERROR: SignedDuration = SignedDuration::from_mins(1);

/// Report of node `$1` with its order; `$2` is the bundle that the node reports as active.
macro_rules! select_report {
    ($lock:literal) => {
        concat!(
            "SELECT h.seen_at AS seen_at, h.software AS software, h.instance AS instance,
               h.earlier_instances AS earlier_instances, h.duplicated_since AS duplicated_since,
               h.duplicated_at AS duplicated_at, h.desired_bundle_id AS desired,
               h.staged_bundle_id AS staged, h.active_bundle_id AS active,
               h.last_good_bundle_id AS last_good, h.verdict_order AS verdict_order,
               h.verdict AS verdict, h.diagnostics AS diagnostics, h.traffic AS traffic,
               h.diverged_at AS diverged_at, h.confirmed_bundle_id AS confirmed,
               o.counter AS order_counter, o.bundle_id AS ordered,
               o.previous_bundle_id AS previous, ",
            confirmation!(),
            " AS confirmation,
               (SELECT c.confirmed_counter FROM node_bundles c
                WHERE c.node_id = $1 AND c.bundle_id = $2) AS confirmed_counter,
               (SELECT c.rejected_counter FROM node_bundles c
                WHERE c.node_id = $1 AND c.bundle_id = o.bundle_id) AS rejected_counter
             FROM node_heartbeats h LEFT JOIN node_orders o ON o.node_id = h.node_id
             WHERE h.node_id = $1",
            $lock
        )
    };
}

/// A heartbeat with its traffic packed for the column, so that compression does not occupy the
/// database's single writer.
#[derive(Clone, Debug, PartialEq)]
pub struct PackedHeartbeat {
    /// The heartbeat without its routes, which only `traffic` has.
    heartbeat: HeartbeatRequest,
    traffic: Option<String>,
}

impl PackedHeartbeat {
    /// Compresses the traffic.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if the traffic cannot be compressed.
    pub fn new(mut heartbeat: HeartbeatRequest) -> Result<Self, StoreError> {
        let traffic = heartbeat.traffic.as_mut().map(std::mem::take);
        let traffic = traffic.as_ref().map(packed).transpose()?;
        Ok(Self { heartbeat, traffic })
    }

    /// CPU use in percent of one core; above 100 if several are busy.
    pub fn cpu_percent(&self) -> f64 {
        self.heartbeat.health.cpu_percent
    }
}

/// Result of writing a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenHeartbeat {
    /// Counter of the node's newest order; 0 without one.
    pub order: i64,
    /// Whether the node has confirmed that order.
    pub confirmation: Confirmation,
    /// True if this heartbeat revealed a second process with the node's identity that no event
    /// `node.duplicated` reports yet.
    pub has_found_duplicate: bool,
    /// True if only the time changed and nothing was written: the caller must write the quiet
    /// heartbeat.
    pub is_sign_of_life: bool,
    /// Counters before this heartbeat; `None` if it has no counters, or equal ones.
    pub replaced: Option<ReplacedCounters>,
}

/// A node's counters before a heartbeat, still packed, so that unpacking does not occupy the
/// database's single writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedCounters {
    column: Option<String>,
    basis: CounterBasis,
}

impl ReplacedCounters {
    /// Counts the requests between these counters and `now`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if the stored counters cannot be unpacked.
    pub fn requests_until(&self, now: &RouteCounts) -> Result<RouteCounts, StoreError> {
        match (self.basis, self.column.as_deref()) {
            (CounterBasis::Unknown, _) => Ok(RouteCounts::default()),
            (CounterBasis::Stored, Some(column)) => Ok(now.since(&stored_counts(column)?)),
            (CounterBasis::Stored, None) | (CounterBasis::Zero, _) => {
                Ok(now.since(&RouteCounts::default()))
            }
        }
    }
}

/// A heartbeat without changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuietHeartbeat {
    /// Time of receipt.
    pub seen_at: Timestamp,
    /// CPU use in percent of one core.
    pub cpu_percent: f64,
}

impl Transaction {
    /// Writes a heartbeat; `None` if the node does not exist.
    pub async fn write_heartbeat(
        &mut self,
        node: NodeId,
        heartbeat: &HeartbeatRequest,
        now: Timestamp,
    ) -> Result<Option<WrittenHeartbeat>, StoreError> {
        let packed = PackedHeartbeat::new(heartbeat.clone())?;
        self.receive_heartbeat(node, &packed, now, Timestamp::MAX)
            .await
    }

    /// Writes the changes of a heartbeat; `None` if the node does not exist. Writes nothing if
    /// there are no changes and the stored heartbeat is newer than `fresh_since`.
    pub async fn receive_heartbeat(
        &mut self,
        node: NodeId,
        PackedHeartbeat {
            heartbeat,
            traffic: new_traffic,
        }: &PackedHeartbeat,
        now: Timestamp,
        fresh_since: Timestamp,
    ) -> Result<Option<WrittenHeartbeat>, StoreError> {
        // Two replicas may receive heartbeats of one node at once: PostgreSQL locks the row; SQLite
        // has one writer.
        let select = if self.is_sqlite() {
            select_report!("")
        } else {
            select_report!(" FOR UPDATE OF h")
        };
        let active = heartbeat.status.as_ref().and_then(|status| status.active);
        let select = sql(select).bind(node).bind(active);
        let Some(row) = select.row(self).await? else {
            return Ok(None);
        };
        let (stored, order) = (stored_report(&row)?, ordered_bundles(&row)?);
        let confirmation = read_confirmation(&row)?;
        let is_fresh = fresh_since < stored.seen_at;
        let source = CounterSource::from(&stored);
        let received = stored.receive(order, heartbeat, now);
        let kept = optional_text(&row, "traffic")?;
        let traffic = match received.traffic {
            TrafficChange::Kept => kept.clone(),
            TrafficChange::Replaced => new_traffic.clone(),
        };
        let is_sign_of_life = is_fresh && received.is_unchanged && traffic == kept;
        let order = order.map_or(0, |order| order.counter);
        if is_sign_of_life {
            return Ok(Some(WrittenHeartbeat {
                order,
                confirmation,
                has_found_duplicate: false,
                is_sign_of_life,
                replaced: None,
            }));
        }
        let oldest = now.checked_sub(MAX_SILENCE).unwrap_or(now).min(fresh_since);
        let replaced = (new_traffic.is_some() && traffic != kept).then(|| ReplacedCounters {
            column: kept,
            basis: CounterBasis::new(source, &received.report, oldest),
        });
        let ReceivedReport {
            report,
            confirmed,
            rejected,
            has_found_duplicate,
            ..
        } = received;
        self.write_report(node, &report, heartbeat.health.cpu_percent, traffic)
            .await?;
        if let Some(answer) = confirmed {
            self.note_confirmed(node, answer).await?;
        }
        if let Some(answer) = rejected {
            self.note_rejected(node, answer).await?;
        }
        Ok(Some(WrittenHeartbeat {
            order,
            confirmation,
            has_found_duplicate: has_found_duplicate && !self.has_event_at(node, now).await?,
            is_sign_of_life,
            replaced,
        }))
    }

    /// Writes quiet heartbeats, sorted by node so that replicas never deadlock. A newer stored
    /// heartbeat is kept, unless a clock that was ahead wrote it.
    pub async fn write_quiet_heartbeats(
        &mut self,
        signs: impl IntoIterator<Item = (NodeId, QuietHeartbeat)>,
    ) -> Result<(), StoreError> {
        let update = "UPDATE node_heartbeats SET seen_at = $2, cpu_percent = $3
                      WHERE node_id = $1 AND (seen_at < $2 OR seen_at > $4)";
        for (node, sign) in signs {
            let QuietHeartbeat {
                seen_at,
                cpu_percent,
            } = sign;
            let update = sql(update).bind(node).bind(seen_at).bind(cpu_percent);
            let latest = seen_at.checked_add(MAX_CLOCK_ERROR).unwrap_or(seen_at);
            update.bind(latest).run(self).await?;
        }
        Ok(())
    }

    async fn write_report(
        &mut self,
        node: NodeId,
        report: &StoredReport,
        cpu_percent: f64,
        traffic: Option<String>,
    ) -> Result<(), StoreError> {
        let StoredReport {
            seen_at,
            version,
            instance,
            earlier_instances,
            duplicate,
            status,
            diverged_at,
            confirmed,
        } = report;
        let NodeStatus {
            desired,
            staged,
            active,
            last_good,
            order,
            verdict,
            diagnostics,
            altered: _, // By `diverged_at`.
        } = status;
        let reasons = (!diagnostics.is_empty()).then(|| to_json(diagnostics));
        let update = "UPDATE node_heartbeats SET seen_at = $2, cpu_percent = $3, software = $4,
                        instance = $5, earlier_instances = $6, duplicated_since = $7,
                        duplicated_at = $8, desired_bundle_id = $9, staged_bundle_id = $10,
                        active_bundle_id = $11, last_good_bundle_id = $12, verdict_order = $13,
                        verdict = $14, diagnostics = $15, traffic = $16, diverged_at = $17,
                        confirmed_bundle_id = $18
                      WHERE node_id = $1";
        let update = sql(update).bind(node).bind(*seen_at).bind(cpu_percent);
        let update = update.bind(version.clone()).bind(*instance);
        let update = update.bind(packed_instances(earlier_instances));
        let update = update.bind(duplicate.map(|duplicate| duplicate.since));
        let update = update.bind(duplicate.map(|duplicate| duplicate.seen_at));
        let update = update.bind(*desired).bind(*staged);
        let update = update.bind(*active).bind(*last_good);
        let update = update.bind(order.and_then(|order| i64::try_from(order).ok()));
        let update = update.bind(verdict.map(verdict_name));
        let update = update.bind(reasons.transpose()?).bind(traffic);
        let update = update.bind(*diverged_at).bind(*confirmed);
        update.run(self).await?;
        Ok(())
    }

    async fn note_confirmed(
        &mut self,
        node: NodeId,
        answer: BundleAnswer,
    ) -> Result<(), StoreError> {
        let BundleAnswer { bundle, counter } = answer;
        let upsert = "INSERT INTO node_bundles (node_id, bundle_id, confirmed_counter)
                      VALUES ($1, $2, $3)
                      ON CONFLICT (node_id, bundle_id)
                      DO UPDATE SET confirmed_counter = excluded.confirmed_counter";
        let upsert = sql(upsert).bind(node).bind(bundle);
        upsert.bind(counter).run(self).await?;
        self.forget_oldest_bundles(node).await
    }

    async fn note_rejected(
        &mut self,
        node: NodeId,
        answer: BundleAnswer,
    ) -> Result<(), StoreError> {
        let BundleAnswer { bundle, counter } = answer;
        let upsert = "INSERT INTO node_bundles (node_id, bundle_id, rejected_counter)
                      VALUES ($1, $2, $3)
                      ON CONFLICT (node_id, bundle_id)
                      DO UPDATE SET rejected_counter = excluded.rejected_counter";
        let upsert = sql(upsert).bind(node).bind(bundle);
        upsert.bind(counter).run(self).await?;
        Ok(())
    }

    /// Deletes all but the node's newest confirmed bundles.
    async fn forget_oldest_bundles(&mut self, node: NodeId) -> Result<(), StoreError> {
        let delete = "DELETE FROM node_bundles WHERE node_id = $1
                        AND COALESCE(confirmed_counter, rejected_counter) < (
                          SELECT confirmed_counter FROM node_bundles
                          WHERE node_id = $1 AND confirmed_counter IS NOT NULL
                          ORDER BY confirmed_counter DESC LIMIT 1 OFFSET $2)";
        let delete = sql(delete).bind(node).bind(MAX_CONFIRMED - 1);
        delete.run(self).await?;
        Ok(())
    }

    /// Returns true if a heartbeat of the same millisecond has already written the event of the
    /// second process.
    async fn has_event_at(&mut self, node: NodeId, now: Timestamp) -> Result<bool, StoreError> {
        let event = "SELECT id FROM node_events
                     WHERE node_id = $1 AND at = $2 AND kind = 'node.duplicated' LIMIT 1";
        let event = sql(event).bind(node).bind(now);
        Ok(event.row(self).await?.is_some())
    }
}

fn stored_report(row: &AnyRow) -> Result<StoredReport, StoreError> {
    let verdict = optional_text(row, "verdict")?;
    let order = optional_number(row, "verdict_order")?;
    let since = optional_time(row, "duplicated_since")?;
    let duplicate = since.zip(optional_time(row, "duplicated_at")?);
    let earlier = optional_text(row, "earlier_instances")?.unwrap_or_default();
    Ok(StoredReport {
        seen_at: time(row, "seen_at")?,
        version: optional_text(row, "software")?,
        instance: optional_id(row, "instance")?,
        earlier_instances: earlier
            .split_whitespace()
            .filter_map(|id| id.parse().ok())
            .collect(),
        duplicate: duplicate.map(|(since, seen_at)| DuplicateNode { since, seen_at }),
        status: NodeStatus {
            desired: optional_id(row, "desired")?,
            staged: optional_id(row, "staged")?,
            active: optional_id(row, "active")?,
            last_good: optional_id(row, "last_good")?,
            order: order.and_then(|order| u64::try_from(order).ok()),
            verdict: verdict.as_deref().map(verdict_of).transpose()?,
            diagnostics: optional_json(row, "diagnostics")?.unwrap_or_default(),
            altered: false,
        },
        diverged_at: optional_time(row, "diverged_at")?,
        confirmed: optional_id(row, "confirmed")?,
    })
}

fn ordered_bundles(row: &AnyRow) -> Result<Option<OrderedBundles>, StoreError> {
    let Some(bundle) = optional_id::<BundleId>(row, "ordered")? else {
        return Ok(None);
    };
    Ok(Some(OrderedBundles {
        counter: number(row, "order_counter")?,
        bundle,
        previous: optional_id(row, "previous")?,
        confirmed_counter: optional_number(row, "confirmed_counter")?,
        rejected_counter: optional_number(row, "rejected_counter")?,
    }))
}

/// Column of earlier processes: each identifier followed by a space.
fn packed_instances(instances: &[InstanceId]) -> Option<String> {
    let packed = instances.iter().map(|instance| format!("{instance} "));
    (!instances.is_empty()).then(|| packed.collect())
}
