//! Small writes that come in floods, heartbeats and tokens of rate limits, are written in groups:
//! those that come while one group is written are the next.
//!
//! SQLite has one writer: a transaction for each would keep all other writes waiting. A write is answered
//! when its group is committed. On SQLite the commit does not wait for the disk: a loss of power may
//! take heartbeats that the nodes tell again, and counts that were over in seconds.

use crate::error::Error;
use control_store::{Group, Rate, Store, StoreError, Transaction, WrittenHeartbeat};
use control_wire::{HeartbeatRequest, NodeEvent, NodeEventId, NodeId};
use jiff::Timestamp;
use std::sync::OnceLock;
use tokio::sync::{mpsc, oneshot};

/// Writes of one transaction.
const MAX_GROUP: usize = 256;
/// Writes that wait; more of them wait for a place.
const MAX_WAITING: usize = 4_096;

/// The way to the task that writes. The task begins with the first write.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    store: Store,
    queue: OnceLock<mpsc::Sender<Waiting>>,
}

/// A queued write.
#[derive(Debug)]
enum Write {
    Heartbeat {
        node: NodeId,
        said: Box<HeartbeatRequest>,
        /// Names the event that a second process with the node's identity leaves.
        event: NodeEventId,
    },
    Tokens {
        bucket: String,
        rate: Rate,
        wanted: i64,
    },
}

#[derive(Debug)]
enum Written {
    /// `None` if the node is gone.
    Heartbeat(Option<WrittenHeartbeat>),
    Tokens(Group),
}

#[derive(Debug)]
struct Waiting {
    write: Write,
    now: Timestamp,
    done: oneshot::Sender<Result<Written, StoreError>>,
}

impl WriteQueue {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            queue: OnceLock::new(),
        }
    }

    /// Writes what a node says; `None` if it is gone. A second process with its identity is noted as `event`.
    pub(crate) async fn heartbeat(
        &self,
        (node, event): (NodeId, NodeEventId),
        said: HeartbeatRequest,
        now: Timestamp,
    ) -> Result<Option<WrittenHeartbeat>, Error> {
        let write = Write::Heartbeat {
            node,
            said: Box::new(said),
            event,
        };
        match self.write(write, now).await? {
            Written::Heartbeat(written) => Ok(written),
            Written::Tokens(_) => Err(Error::Stopped),
        }
    }

    /// Takes up to `wanted` tokens of a bucket that replicas share.
    pub(crate) async fn take_tokens(
        &self,
        bucket: &str,
        rate: Rate,
        wanted: i64,
        now: Timestamp,
    ) -> Result<Group, Error> {
        let write = Write::Tokens {
            bucket: bucket.to_owned(),
            rate,
            wanted,
        };
        match self.write(write, now).await? {
            Written::Tokens(group) => Ok(group),
            Written::Heartbeat(_) => Err(Error::Stopped),
        }
    }

    async fn write(&self, write: Write, now: Timestamp) -> Result<Written, Error> {
        let queue = self.queue.get_or_init(|| {
            let (queue, waiting) = mpsc::channel(MAX_WAITING);
            tokio::spawn(write_groups(self.store.clone(), waiting));
            queue
        });
        let (done, written) = oneshot::channel();
        let waiting = Waiting { write, now, done };
        queue.send(waiting).await.map_err(|_| Error::Stopped)?;
        Ok(written.await.map_err(|_| Error::Stopped)??)
    }
}

impl Write {
    /// Sort key of the group: replicas that write the same rows in one order never deadlock.
    fn key(&self) -> (Option<NodeId>, String) {
        match self {
            Self::Heartbeat { node, .. } => (Some(*node), String::new()),
            Self::Tokens { bucket, .. } => (None, bucket.clone()),
        }
    }

    async fn run(&self, tx: &mut Transaction, now: Timestamp) -> Result<Written, StoreError> {
        Ok(match self {
            Self::Heartbeat { node, said, event } => {
                let written = tx.write_heartbeat(*node, said, now).await?;
                if written.is_some_and(|written| written.has_found_duplicate) {
                    let told = duplicate_event(now);
                    let told = [(*event, &told)].into_iter();
                    tx.insert_node_events(*node, told).await?;
                }
                Written::Heartbeat(written)
            }
            Self::Tokens {
                bucket,
                rate,
                wanted,
            } => Written::Tokens(tx.take_tokens(bucket, *rate, *wanted, now).await?),
        })
    }
}

fn duplicate_event(now: Timestamp) -> NodeEvent {
    NodeEvent {
        at: now,
        kind: "node.duplicated".to_owned(),
        message: "two running processes report as this node: its data folder was copied".to_owned(),
    }
}

async fn write_groups(store: Store, mut waiting: mpsc::Receiver<Waiting>) {
    let mut group = Vec::with_capacity(MAX_GROUP);
    while waiting.recv_many(&mut group, MAX_GROUP).await > 0 {
        group.sort_by_cached_key(|one: &Waiting| one.write.key());
        match write_group(&store, &group).await {
            Ok(written) => {
                for (one, written) in group.drain(..).zip(written) {
                    // The client may have disconnected.
                    drop(one.done.send(Ok(written)));
                }
            }
            // All callers learn that the store is unavailable: retrying each write alone would take hours.
            Err(StoreError::Unavailable(_)) => group.clear(),
            Err(_) => write_each(&store, group.drain(..)).await,
        }
    }
}

async fn write_group(store: &Store, group: &[Waiting]) -> Result<Vec<Written>, StoreError> {
    let mut tx = store.begin_unsynced().await?;
    let mut written = Vec::with_capacity(group.len());
    for one in group {
        written.push(one.write.run(&mut tx, one.now).await?);
    }
    tx.commit().await?;
    Ok(written)
}

/// One that cannot be written must not fail the rest.
async fn write_each(store: &Store, group: impl Iterator<Item = Waiting>) {
    for Waiting { write, now, done } in group {
        let written = async {
            let mut tx = store.begin_unsynced().await?;
            let written = write.run(&mut tx, now).await?;
            tx.commit().await?;
            Ok(written)
        };
        drop(done.send(written.await));
    }
}
