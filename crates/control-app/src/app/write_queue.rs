//! Queue for frequent small writes: heartbeats and tokens of rate limits. Writes that arrive while
//! one group is written form the next group. Tokens go first, because every request may wait for
//! them; the rest of a group is heartbeats, one per organization in turn.
//!
//! SQLite has one writer, so a transaction per heartbeat would block all other writes. A write is
//! acknowledged when its group is committed. On SQLite the commit does not wait for the disk: a
//! power failure may lose heartbeats, which the nodes repeat, and token counts, which expire within
//! seconds.
//!
//! A heartbeat without news is acknowledged before it is written. Such heartbeats are gathered for
//! an eighth of the heartbeat interval and written in the order of node identifiers, so that
//! neighbours share a page of the database.

pub(crate) mod gathered_traffic;
mod quiet_heartbeats;
mod turns;

use crate::app::write_queue::gathered_traffic::GatheredTraffic;
use crate::error::Error;
use control_domain::HeartbeatInterval;
use control_store::{
    Group, PackedHeartbeat, QuietHeartbeat, Rate, Store, StoreError, Transaction, WrittenHeartbeat,
};
use control_wire::{NodeEvent, NodeEventId, NodeId, OrgId};
use jiff::Timestamp;
use quiet_heartbeats::QuietHeartbeats;
use std::sync::OnceLock;
use tokio::sync::{mpsc, oneshot};
use turns::Turns;

/// Maximum number of writes in one transaction.
const MAX_GROUP: usize = 256;
/// Maximum number of writes moved to the rotation at once. The queue itself is unbounded: its
/// length is limited by the requests in flight, and those by connections. A limit of its own could
/// be used up by one organization.
const MAX_RECEIVED: usize = 4_096;

/// Sender for the writing task, which starts with the first write.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    store: Store,
    queue: OnceLock<mpsc::UnboundedSender<Waiting>>,
    /// Request counts from heartbeats, gathered until their five-minute step is over.
    pub(crate) traffic: GatheredTraffic,
}

#[derive(Debug)]
pub(crate) struct HeartbeatWrite {
    pub(crate) node: NodeId,
    /// The organization of the turn that the write uses.
    pub(crate) org: OrgId,
    pub(crate) heartbeat_request: Box<PackedHeartbeat>,
    /// Identifier for the event that is recorded if a second process uses the node's identity.
    pub(crate) event: NodeEventId,
    pub(crate) interval: HeartbeatInterval,
}

#[derive(Debug)]
enum Write {
    Heartbeat(HeartbeatWrite),
    Tokens {
        bucket: String,
        rate: Rate,
        wanted: i64,
    },
}

#[derive(Debug)]
enum Written {
    /// `None` if the node does not exist.
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
            traffic: GatheredTraffic::default(),
        }
    }

    /// Writes a node's heartbeat; `None` if the node does not exist.
    pub(crate) async fn heartbeat(
        &self,
        heartbeat: HeartbeatWrite,
        now: Timestamp,
    ) -> Result<Option<WrittenHeartbeat>, Error> {
        match self.write(Write::Heartbeat(heartbeat), now).await? {
            Written::Heartbeat(written) => Ok(written),
            Written::Tokens(_) => Err(Error::Stopped),
        }
    }

    /// Takes up to `wanted` tokens of a shared bucket.
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
            let (queue, waiting) = mpsc::unbounded_channel();
            tokio::spawn(write_groups(self.store.clone(), waiting));
            queue
        });
        let (done, written) = oneshot::channel();
        let waiting = Waiting { write, now, done };
        queue.send(waiting).map_err(|_| Error::Stopped)?;
        Ok(written.await.map_err(|_| Error::Stopped)??)
    }
}

impl Write {
    /// The organization of the turn that the write uses; `None` is written first.
    fn org(&self) -> Option<OrgId> {
        match self {
            Self::Heartbeat(heartbeat) => Some(heartbeat.org),
            Self::Tokens { .. } => None,
        }
    }

    /// Sort key within a group: replicas lock the same rows in one order, so they never deadlock.
    fn key(&self) -> (Option<NodeId>, String) {
        match self {
            Self::Heartbeat(heartbeat) => (Some(heartbeat.node), String::new()),
            Self::Tokens { bucket, .. } => (None, bucket.clone()),
        }
    }

    async fn run(&self, tx: &mut Transaction, now: Timestamp) -> Result<Written, StoreError> {
        Ok(match self {
            Self::Heartbeat(heartbeat) => {
                let HeartbeatWrite {
                    node,
                    org: _,
                    heartbeat_request,
                    event,
                    interval,
                } = heartbeat;
                let fresh_since = interval.online_since(now);
                let received = tx.receive_heartbeat(*node, heartbeat_request, now, fresh_since);
                let written = received.await?;
                if (written.as_ref()).is_some_and(|written| written.has_found_duplicate) {
                    let event_body = duplicate_event(now);
                    let events = [(*event, &event_body)].into_iter();
                    tx.insert_node_events(*node, events).await?;
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

async fn write_groups(store: Store, mut waiting: mpsc::UnboundedReceiver<Waiting>) {
    let (mut received, mut turns) = (Vec::new(), Turns::default());
    let mut signs = QuietHeartbeats::default();
    loop {
        // Random order: a queue that is never empty must not starve the gathered heartbeats.
        tokio::select! {
            count = waiting.recv_many(&mut received, MAX_RECEIVED) => if count == 0 {
                return;
            },
            () = std::future::ready(()), if !turns.is_empty() => {}
            () = signs.due() => {
                signs.write_part(&store).await;
                continue;
            }
        }
        for one in received.drain(..) {
            turns.add(one.write.org(), one);
        }
        let mut group = turns.take(MAX_GROUP);
        group.sort_by_cached_key(|one: &Waiting| one.write.key());
        match write_group(&store, &group).await {
            Ok(written) => {
                for (one, written) in group.drain(..).zip(written) {
                    gather_quiet(&mut signs, &one, &written);
                    // The client may have disconnected.
                    drop(one.done.send(Ok(written)));
                }
            }
            // All callers get the error: retrying each write alone would take hours while the store
            // is unavailable.
            Err(StoreError::Unavailable(_)) => group.clear(),
            Err(_) => write_each(&store, group.drain(..), &mut signs).await,
        }
    }
}

/// Gathers a heartbeat that was acknowledged without a write.
fn gather_quiet(signs: &mut QuietHeartbeats, one: &Waiting, written: &Written) {
    let (Write::Heartbeat(heartbeat), Written::Heartbeat(Some(written))) = (&one.write, written)
    else {
        return;
    };
    if written.is_sign_of_life {
        let sign = QuietHeartbeat {
            seen_at: one.now,
            cpu_percent: heartbeat.heartbeat_request.cpu_percent(),
        };
        signs.add(heartbeat.node, sign, heartbeat.interval);
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

/// Writes each in its own transaction, so that one failure does not affect the rest.
async fn write_each(
    store: &Store,
    group: impl Iterator<Item = Waiting>,
    signs: &mut QuietHeartbeats,
) {
    for one in group {
        let written = async {
            let mut tx = store.begin_unsynced().await?;
            let written = one.write.run(&mut tx, one.now).await?;
            tx.commit().await?;
            Ok(written)
        };
        let written = written.await;
        if let Ok(written) = &written {
            gather_quiet(signs, &one, written);
        }
        drop(one.done.send(written));
    }
}
