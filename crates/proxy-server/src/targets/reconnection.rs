//! Reconnects to unreachable targets in the background, so that no request has to try.

use crate::worker::heartbeat;
use proxy_health::HealthCause;
use proxy_plan::{Plan, TargetPlan};
use proxy_upstream::{TargetChanges, TargetState};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Maximum time of a connect.
const CONNECT_TIME: Duration = Duration::from_secs(1);

/// Connects to unreachable targets of `plan`: when their time out of rotation ends, or at once
/// while no target of their upstream is available. A target that accepts the connection returns to
/// rotation.
pub(crate) fn begin(plan: &Plan, changes: &Arc<TargetChanges>, wake: &Arc<Notify>) {
    let now_ns = heartbeat::now_ns();
    for upstream in plan.upstreams() {
        let takes_requests = |target: &TargetPlan| target.state.causes().takes_requests();
        let is_down = !upstream.targets.iter().any(takes_requests);
        for target in &upstream.targets {
            let is_left_out = target.state.causes().contains(HealthCause::Connect);
            if is_left_out && (is_down || target.state.connect_backoff().take_turn(now_ns)) {
                let (changes, wake) = (Arc::clone(changes), Arc::clone(wake));
                tokio::spawn(connect(Arc::clone(&target.state), changes, wake));
            }
        }
    }
}

async fn connect(state: Arc<TargetState>, changes: Arc<TargetChanges>, wake: Arc<Notify>) {
    let Some(address) = state.address() else {
        return;
    };
    let connecting = tokio::time::timeout(CONNECT_TIME, TcpStream::connect(address));
    if matches!(connecting.await, Ok(Ok(_))) {
        state.clear(HealthCause::Connect);
        changes.note();
        wake.notify_one();
    }
}
