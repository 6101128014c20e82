//! Resolution of targets that have a DNS name.

use proxy_health::HealthCause;
use proxy_model::Host;
use proxy_plan::{Plan, TargetTransaction};
use proxy_upstream::{TargetId, TargetState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::task::{JoinHandle, JoinSet};

/// Interval of resolving a name again.
pub(crate) const EVERY: Duration = Duration::from_secs(10);

/// Maximum number of concurrent lookups. A lookup without an answer does not delay other lookups.
const MAX_LOOKUPS: usize = 32;

/// Maximum delay of the start by the first lookups.
const FIRST: Duration = Duration::from_secs(5);

/// Resolves every name of `plan`. A name that cannot be resolved keeps its last addresses; a target
/// that never had an address is marked unhealthy. Returns whether any target changed.
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
            // A task fails only by a panic, after which the target may have changed.
            Some(one) => changed |= one.unwrap_or(true),
            None => return changed,
        }
    }
}

/// Resolves the names of new targets, for [`FIRST`] at most. The state of other targets belongs to
/// the active plan.
pub(crate) async fn first(plan: &Plan, targets: &TargetTransaction, now: SystemTime) {
    let looking = those(plan, |target| targets.is_new(target), now);
    if tokio::time::timeout(FIRST, looking).await.is_err() {
        tracing::warn!("not all names of targets were resolved before the start");
    }
}

/// Whether the current lookups changed anything; pending if there are none.
pub(crate) async fn end(looking: &mut Option<JoinHandle<bool>>) -> bool {
    let Some(found) = looking else {
        return std::future::pending().await;
    };
    // The task fails only by a panic, after which a target may have changed.
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
                state.fail(
                    HealthCause::Dns,
                    &format!("cannot resolve {name}: {error}"),
                    now,
                );
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
            state.fail(HealthCause::Dns, &format!("{name} has no address"), now);
        }
        return true;
    }
    let first = state.addresses().is_empty();
    let changed = state.resolve(addresses);
    if first {
        state.clear(HealthCause::Dns);
    }
    changed || first
}
