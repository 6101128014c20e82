//! Reconnects to unreachable targets in the background, so that no request has to try.

use crate::runtime::system_clock::now;
use crate::targets::connectors;
use crate::targets::pools::ConnectionLimits;
use crate::tls::LoadedTls;
use crate::worker::heartbeat;
use proxy_health::HealthCause;
use proxy_pipeline::connect_failure_text;
use proxy_plan::{Plan, TargetPlan};
use proxy_pool::{ConnectError, ConnectSettings, connect_once};
use proxy_upstream::{TargetChanges, TargetState};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

/// Maximum time of an attempt: TCP, PROXY protocol header and TLS together.
const CONNECT_TIME: Duration = Duration::from_secs(3);

/// The attempts in progress, at most one for each target. They end with this value.
#[derive(Debug, Default)]
pub(crate) struct Reconnections(Vec<Attempt>);

#[derive(Debug)]
struct Attempt {
    state: Arc<TargetState>,
    task: AbortOnDropHandle<()>,
}

/// Notification of workers and of the control thread after a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observers<'a> {
    pub(crate) changes: &'a Arc<TargetChanges>,
    pub(crate) wake: &'a Arc<Notify>,
}

impl Reconnections {
    /// Connects to unreachable targets of `plan` as a request does: when their time out of rotation
    /// ends, or at once while no target of their upstream is available. A target that accepts the
    /// connection returns to rotation.
    pub(crate) fn begin(
        &mut self,
        plan: &Plan,
        loaded_tls: &LoadedTls,
        limits: &ConnectionLimits,
        observers: Observers<'_>,
    ) {
        self.0.retain(|attempt| !attempt.task.is_finished());
        let now_ns = heartbeat::now_ns();
        let takes_requests = |target: &TargetPlan| target.state.causes().takes_requests();
        for (upstream, tls) in plan.upstreams().iter().zip(&loaded_tls.upstreams) {
            let is_down = !upstream.targets.iter().any(takes_requests);
            for target in &upstream.targets {
                let state = &target.state;
                let is_left_out = state.causes().contains(HealthCause::Connect);
                let is_due = || is_down || state.connect_backoff().take_turn(now_ns);
                if !is_left_out || self.is_trying(state) || !is_due() {
                    continue;
                }
                let settings = connectors::for_target(upstream, target, tls.as_ref(), limits);
                if let Some(settings) = settings {
                    self.0.push(Attempt {
                        state: Arc::clone(state),
                        task: spawn(Arc::clone(state), settings, upstream.http2, observers),
                    });
                }
            }
        }
    }

    fn is_trying(&self, state: &Arc<TargetState>) -> bool {
        self.0.iter().any(|one| Arc::ptr_eq(&one.state, state))
    }
}

fn spawn(
    state: Arc<TargetState>,
    settings: ConnectSettings,
    http2: bool,
    observers: Observers<'_>,
) -> AbortOnDropHandle<()> {
    let (changes, wake) = (Arc::clone(observers.changes), Arc::clone(observers.wake));
    AbortOnDropHandle::new(tokio::spawn(async move {
        match try_once(&state, &settings, http2).await {
            Ok(()) => {
                state.clear(HealthCause::Connect);
                changes.note();
                wake.notify_one();
            }
            // The proxy's own lack of descriptors says nothing about the target.
            Err(ConnectError::NoDescriptor(_)) => {}
            // A request that has connected meanwhile has cleared the cause.
            Err(error) if state.causes().contains(HealthCause::Connect) => {
                let last_error = format!("connect: {}", connect_failure_text(&error));
                state.fail(HealthCause::Connect, &last_error, now());
            }
            Err(_) => {}
        }
    }))
}

async fn try_once(
    state: &TargetState,
    settings: &ConnectSettings,
    http2: bool,
) -> Result<(), ConnectError> {
    let address = state.address().ok_or(ConnectError::NoAddress)?;
    let connecting = tokio::time::timeout(CONNECT_TIME, connect_once(address, settings));
    let stream = connecting.await.unwrap_or_else(|_| {
        let text = format!("no connection within {CONNECT_TIME:?}");
        let error = io::Error::new(io::ErrorKind::TimedOut, text);
        Err(ConnectError::Io(error))
    })?;
    if http2 {
        stream.check_http2()?;
    }
    Ok(())
}
