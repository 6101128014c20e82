//! Keeps the addresses of targets that are known by name.

use proxy_model::Host;
use proxy_plan::{Plan, TargetTransaction};
use proxy_upstream::{TargetId, TargetState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::task::{JoinHandle, JoinSet};

/// How often a name is looked up again.
pub(crate) const EVERY: Duration = Duration::from_secs(10);

/// Most look-ups at once. A name server that does not answer one holds up none of the others.
const MAX_LOOKUPS: usize = 32;

/// How long the first look-up of all names may delay the start.
const FIRST: Duration = Duration::from_secs(5);

/// Looks up every name of `plan`. A name that cannot be resolved keeps its last addresses; a target
/// that never had any is marked unhealthy. Says whether any target changed.
pub(crate) async fn all(plan: &Plan, now: SystemTime) -> bool {
    those(plan, |_| true, now).await
}

async fn those(plan: &Plan, wanted: impl Fn(TargetId) -> bool, now: SystemTime) -> bool {
    let mut waiting = named(plan, wanted).into_iter();
    let mut looking = JoinSet::new();
    let mut changed = false;
    loop {
        let room = MAX_LOOKUPS.saturating_sub(looking.len());
        for (name, port, state) in waiting.by_ref().take(room) {
            looking.spawn(async move { one(&name, port, &state, now).await });
        }
        match looking.join_next().await {
            // One has failed only if it panicked, and then nothing is known to be as before.
            Some(one) => changed |= one.unwrap_or(true),
            None => return changed,
        }
    }
}

/// Looks up the names of targets that are new, for [`FIRST`] at most. The state of all others belongs
/// to the plan in force.
pub(crate) async fn first(plan: &Plan, targets: &TargetTransaction, now: SystemTime) {
    let looking = those(plan, |target| targets.is_new(target), now);
    if tokio::time::timeout(FIRST, looking).await.is_err() {
        tracing::warn!("not all names of targets were resolved before the start");
    }
}

/// Whether a look-up that is under way has changed anything; never, where none is.
pub(crate) async fn end(looking: &mut Option<JoinHandle<bool>>) -> bool {
    let Some(found) = looking else {
        return std::future::pending().await;
    };
    // It has failed only if it panicked, and then nothing is known to be as before.
    let changed = found.await.unwrap_or(true);
    *looking = None;
    changed
}

fn named(plan: &Plan, wanted: impl Fn(TargetId) -> bool) -> Vec<(Box<str>, u16, Arc<TargetState>)> {
    let targets = plan
        .upstreams()
        .iter()
        .flat_map(|upstream| &upstream.targets);
    targets
        .filter(|target| wanted(target.id))
        .filter_map(|target| match &target.address.host {
            Host::Ip(_) => None,
            Host::Name(name) => {
                Some((name.clone(), target.address.port, Arc::clone(&target.state)))
            }
        })
        .collect()
}

async fn one(name: &str, port: u16, state: &TargetState, now: SystemTime) -> bool {
    match tokio::net::lookup_host((name, port)).await {
        Ok(found) => {
            let mut addresses: Vec<SocketAddr> = found.collect();
            addresses.sort_unstable();
            addresses.dedup();
            settle(name, state, addresses, now)
        }
        Err(error) => {
            if state.addresses().is_empty() {
                state.fail(format!("cannot resolve {name}: {error}"), now);
                return true;
            }
            tracing::warn!(name, %error, "cannot resolve a target; its last addresses are kept");
            false
        }
    }
}

fn settle(name: &str, state: &TargetState, addresses: Vec<SocketAddr>, now: SystemTime) -> bool {
    if addresses.is_empty() {
        if state.addresses().is_empty() {
            state.fail(format!("{name} has no address"), now);
        }
        return true;
    }
    let first = state.addresses().is_empty();
    let changed = state.resolve(addresses);
    if first {
        state.recover();
    }
    changed || first
}
