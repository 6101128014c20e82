//! One task for each target that is to be asked.

use crate::check::check;
use crate::error::CheckError;
use crate::settings::ProbeSettings;
use proxy_health::{CheckState, HealthCause, Verdict};
use proxy_upstream::{TargetId, TargetState};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::{Notify, watch};
use tokio_util::task::AbortOnDropHandle;

/// A target that is to be asked.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The target.
    pub target: TargetId,
    /// Where the verdict goes.
    pub state: Arc<TargetState>,
    /// The name of its upstream, for the log.
    pub upstream: Arc<str>,
    /// What is asked, and how often.
    pub settings: ProbeSettings,
}

/// Asks targets whether they are well, each in a task of its own. Dropped, it asks no more.
#[derive(Debug)]
pub struct Prober {
    tasks: HashMap<TargetId, ProbeTask>,
    changes: Arc<Notify>,
    now: fn() -> SystemTime,
}

#[derive(Debug)]
struct ProbeTask {
    settings: watch::Sender<ProbeSettings>,
    state: Arc<TargetState>,
    _task: AbortOnDropHandle<()>,
}

impl Prober {
    /// A prober without targets, which tells `changes` when a target's health has changed, and reads the
    /// time of day by `now`.
    #[must_use]
    pub fn new(changes: Arc<Notify>, now: fn() -> SystemTime) -> Self {
        Self {
            tasks: HashMap::new(),
            changes,
            now,
        }
    }

    /// Asks `probes` from now on, and no other targets. A target that was asked before keeps what its
    /// results have come to; one that is not asked any more is taken to be well.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn arrange(&mut self, probes: Vec<Probe>) {
        let mut before = std::mem::take(&mut self.tasks);
        for probe in probes {
            let task = match before.remove(&probe.target) {
                Some(task) => {
                    task.settings.send_if_modified(|held| {
                        let is_other = !held.asks_the_same(&probe.settings);
                        *held = probe.settings.clone();
                        is_other
                    });
                    task
                }
                None => self.start(probe.clone()),
            };
            self.tasks.insert(probe.target, task);
        }
        for task in before.into_values() {
            task.state.clear(HealthCause::ActiveCheck);
        }
    }

    fn start(&self, probe: Probe) -> ProbeTask {
        let Probe {
            target: _,
            state,
            upstream,
            settings,
        } = probe;
        let (sender, receiver) = watch::channel(settings);
        let asked = AskedTarget {
            state: Arc::clone(&state),
            upstream,
            counts: CheckState::default(),
            changes: Arc::clone(&self.changes),
            now: self.now,
        };
        ProbeTask {
            settings: sender,
            state,
            _task: AbortOnDropHandle::new(tokio::spawn(asked.run(receiver))),
        }
    }
}

/// A target as its task knows it.
struct AskedTarget {
    state: Arc<TargetState>,
    upstream: Arc<str>,
    counts: CheckState,
    changes: Arc<Notify>,
    now: fn() -> SystemTime,
}

impl AskedTarget {
    async fn run(mut self, mut settings: watch::Receiver<ProbeSettings>) {
        let first = settings.borrow().timing.first_interval(random());
        let mut pause = Box::pin(tokio::time::sleep(first));
        loop {
            tokio::select! {
                () = &mut pause => {}
                changed = settings.changed() => match changed {
                    Ok(()) => {
                        let first = settings.borrow_and_update().timing.first_interval(random());
                        pause = Box::pin(tokio::time::sleep(first));
                        continue;
                    }
                    Err(_) => return,
                },
            }
            let current = settings.borrow().clone();
            // From the beginning of this check to that of the next.
            let next = current.timing.next_interval(random());
            pause = Box::pin(tokio::time::sleep(next));
            let result = check(self.state.address(), &current).await;
            self.observe(result, &current);
        }
    }

    fn observe(&mut self, result: Result<(), CheckError>, settings: &ProbeSettings) {
        let passed = result.is_ok();
        self.state.results().add(passed);
        let changed = self.counts.observe(passed, settings.timing.thresholds);
        if let (Err(error), Verdict::Unhealthy) = (&result, self.counts.verdict()) {
            let last_error = format!("health check: {error}");
            let state = &self.state;
            state.fail(HealthCause::ActiveCheck, &last_error, (self.now)());
        }
        let upstream = &*self.upstream;
        let address = self.state.address().map(|address| address.to_string());
        let target = address.as_deref().unwrap_or(&settings.authority);
        match (changed, result) {
            (Some(Verdict::Unhealthy), Err(error)) => {
                tracing::warn!(upstream, target, %error, "a target fails its health checks");
            }
            (Some(Verdict::Healthy), _) => {
                self.state.clear(HealthCause::ActiveCheck);
                tracing::info!(upstream, target, "a target passes its health checks");
            }
            (Some(_) | None, _) => return,
        }
        self.changes.notify_one();
    }
}

/// Random bits: the hash of nothing under a key of its own.
fn random() -> u32 {
    let bits = RandomState::new().hash_one(0_u8);
    u32::try_from(bits >> 32).unwrap_or_default()
}
