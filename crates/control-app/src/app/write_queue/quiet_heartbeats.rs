//! Heartbeats without news, gathered and written together.

use control_domain::HeartbeatInterval;
use control_store::{QuietHeartbeat, Store, StoreError};
use control_wire::NodeId;
use std::collections::BTreeMap;
use std::future::pending;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// Maximum number of heartbeats in one transaction, which blocks other writers.
const MAX_PART: usize = 256;
/// Divisor of the heartbeat interval: the maximum delay of a gathered heartbeat. A node counts as
/// offline only after three missed intervals.
const DELAY_PARTS: u32 = 8;

/// Gathered heartbeats by node. A crash loses up to an eighth of an interval; the nodes' next
/// heartbeats replace them.
#[derive(Debug, Default)]
pub(super) struct QuietHeartbeats {
    signs: BTreeMap<NodeId, QuietHeartbeat>,
    due: Option<Pin<Box<Sleep>>>,
}

impl QuietHeartbeats {
    /// Adds a heartbeat; the first one sets the time when all are written.
    pub(super) fn add(&mut self, node: NodeId, sign: QuietHeartbeat, interval: HeartbeatInterval) {
        self.signs.insert(node, sign);
        let delay = Duration::from_secs(interval.secs().into()) / DELAY_PARTS;
        self.due.get_or_insert_with(|| Box::pin(sleep(delay)));
    }

    /// Waits until the heartbeats are due; forever if there are none.
    pub(super) async fn due(&mut self) {
        match &mut self.due {
            Some(due) => due.await,
            None => pending().await,
        }
    }

    /// Writes one part of the heartbeats, in the order of the nodes. Drops heartbeats that cannot
    /// be written, because the nodes repeat them.
    pub(super) async fn write_part(&mut self, store: &Store) {
        let mut part = Vec::with_capacity(MAX_PART.min(self.signs.len()));
        while let Some(sign) = self.signs.pop_first() {
            part.push(sign);
            if part.len() == MAX_PART {
                break;
            }
        }
        let is_rest = !self.signs.is_empty();
        self.due = is_rest.then(|| Box::pin(sleep(Duration::ZERO)));
        if let Err(error) = write(store, part).await {
            tracing::warn!(%error, "quiet heartbeats were not written");
        }
    }
}

async fn write(store: &Store, part: Vec<(NodeId, QuietHeartbeat)>) -> Result<(), StoreError> {
    let mut tx = store.begin_unsynced().await?;
    tx.write_quiet_heartbeats(part).await?;
    tx.commit().await
}
