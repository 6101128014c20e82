//! The checks of one target, again and again.

use crate::check::check;
use crate::error::CheckError;
use crate::peers::Peers;
use crate::settings::ProbeSettings;
use proxy_health::{CheckState, HealthCause, Verdict};
use proxy_upstream::{TargetId, TargetState};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, watch};

/// A target to check.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Target that is probed.
    pub target: TargetId,
    /// Receiver of the verdict.
    pub state: Arc<TargetState>,
    /// All targets of its upstream.
    pub peers: Arc<Peers>,
    /// The name of its upstream, for the log.
    pub upstream: Arc<str>,
    /// The check, and its interval.
    pub settings: ProbeSettings,
}

/// Probes of the same target are equal if their checks and intervals are equal.
impl PartialEq for Probe {
    fn eq(&self, other: &Self) -> bool {
        let is_same_target = self.target == other.target && self.peers == other.peers;
        is_same_target && self.settings.sends_the_same(&other.settings)
    }
}

/// Checks the target of `probe` until the sender of `probe` is dropped. A changed probe begins with
/// a first interval, and keeps the results. Notifies `changes` when the target's health changes;
/// `now` reads the time of day.
pub async fn run(mut probe: watch::Receiver<Probe>, changes: Arc<Notify>, now: fn() -> SystemTime) {
    let mut asked = AskedTarget {
        counts: CheckState::default(),
        changes,
        now,
    };
    let first = probe.borrow().settings.timing.first_interval(random());
    let mut pause = Box::pin(tokio::time::sleep(first));
    // Time that the outage has lasted at the next check; `None` while a target serves.
    let mut outage = None;
    loop {
        let peers = Arc::clone(&probe.borrow().peers);
        tokio::select! {
            () = &mut pause => {}
            () = peers.woken() => {}
            changed = probe.changed() => match changed {
                Ok(()) => {
                    let timing = probe.borrow_and_update().settings.timing;
                    pause = Box::pin(tokio::time::sleep(timing.first_interval(random())));
                    continue;
                }
                Err(_) => return,
            },
        }
        let current = probe.borrow().clone();
        // From the start of this check to the start of the next.
        let timing = current.settings.timing;
        outage = (current.peers.are_down()).then(|| outage.unwrap_or_default());
        let next = timing.next_interval(random(), outage);
        outage = outage.map(|lasted: Duration| lasted.saturating_add(next));
        pause = Box::pin(tokio::time::sleep(next));
        let result = check(current.state.address(), &current.settings).await;
        asked.observe(result, &current);
    }
}

/// A target with the state of its task.
struct AskedTarget {
    counts: CheckState,
    changes: Arc<Notify>,
    now: fn() -> SystemTime,
}

impl AskedTarget {
    fn observe(&mut self, result: Result<(), CheckError>, probe: &Probe) {
        let Probe {
            target: _,
            state,
            peers,
            upstream,
            settings,
        } = probe;
        let passed = result.is_ok();
        state.results().add(passed);
        if passed && state.causes().contains(HealthCause::Connect) {
            state.clear(HealthCause::Connect);
            self.changes.notify_one();
        }
        let changed = self.counts.observe(passed, settings.timing.thresholds);
        if let (Err(error), Verdict::Unhealthy) = (&result, self.counts.verdict()) {
            let last_error = format!("health check: {error}");
            state.fail(HealthCause::ActiveCheck, &last_error, (self.now)());
        }
        let address = state.address().map(|address| address.to_string());
        let target = address.as_deref().unwrap_or(&settings.authority);
        match (changed, result) {
            (Some(Verdict::Unhealthy), Err(error)) => {
                tracing::warn!(%upstream, target, %error, "a target fails its health checks");
            }
            (Some(Verdict::Healthy), _) => {
                state.clear(HealthCause::ActiveCheck);
                tracing::info!(%upstream, target, "a target passes its health checks");
            }
            (Some(_) | None, _) => return,
        }
        self.changes.notify_one();
        peers.wake_if_down();
    }
}

/// Random bits: the hash of nothing under a key of its own.
fn random() -> u32 {
    let bits = RandomState::new().hash_one(0_u8);
    u32::try_from(bits >> 32).unwrap_or_default()
}
