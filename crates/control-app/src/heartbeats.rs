//! Heartbeats are written in groups: those that come while one group is written are the next.
//!
//! SQLite has one writer, and a commit waits for the disk: alone, each heartbeat would do so. A
//! heartbeat is answered when its group is committed, so what was acknowledged is not lost.

use crate::error::Error;
use control_store::{Store, StoreError};
use control_wire::{HeartbeatRequest, NodeId};
use jiff::Timestamp;
use std::sync::OnceLock;
use tokio::sync::{mpsc, oneshot};

/// Heartbeats of one transaction.
const MAX_GROUP: usize = 256;
/// Heartbeats that wait; more of them wait for a place.
const MAX_WAITING: usize = 4_096;

/// The way to the task that writes. The task begins with the first heartbeat.
#[derive(Debug, Default)]
pub(crate) struct HeartbeatQueue(OnceLock<mpsc::Sender<Waiting>>);

/// The counter of the node's newest order; `None` if the node is gone.
type Written = Result<Option<i64>, StoreError>;

#[derive(Debug)]
struct Waiting {
    node: NodeId,
    said: HeartbeatRequest,
    now: Timestamp,
    done: oneshot::Sender<Written>,
}

impl HeartbeatQueue {
    /// Returns once the heartbeat is committed.
    pub(crate) async fn write(
        &self,
        store: &Store,
        node: NodeId,
        said: HeartbeatRequest,
        now: Timestamp,
    ) -> Result<Option<i64>, Error> {
        let queue = self.0.get_or_init(|| {
            let (queue, waiting) = mpsc::channel(MAX_WAITING);
            tokio::spawn(write_groups(store.clone(), waiting));
            queue
        });
        let (done, written) = oneshot::channel();
        let waiting = Waiting {
            node,
            said,
            now,
            done,
        };
        queue.send(waiting).await.map_err(|_| Error::Stopped)?;
        Ok(written.await.map_err(|_| Error::Stopped)??)
    }
}

async fn write_groups(store: Store, mut waiting: mpsc::Receiver<Waiting>) {
    let mut group = Vec::with_capacity(MAX_GROUP);
    while waiting.recv_many(&mut group, MAX_GROUP).await > 0 {
        match write_group(&store, &group).await {
            Ok(counters) => {
                for (one, counter) in group.drain(..).zip(counters) {
                    // A client that went away is not told.
                    drop(one.done.send(Ok(counter)));
                }
            }
            // One that cannot be written must not fail the others.
            Err(_) => {
                for one in group.drain(..) {
                    let written = write_group(&store, std::slice::from_ref(&one)).await;
                    let counter = written.map(|counters| counters.into_iter().flatten().next());
                    drop(one.done.send(counter));
                }
            }
        }
    }
}

async fn write_group(store: &Store, group: &[Waiting]) -> Result<Vec<Option<i64>>, StoreError> {
    let mut tx = store.begin().await?;
    let mut counters = Vec::with_capacity(group.len());
    for one in group {
        counters.push(tx.write_heartbeat(one.node, &one.said, one.now).await?);
    }
    tx.commit().await?;
    Ok(counters)
}
