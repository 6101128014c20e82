//! Passive health: leaves out a target that cannot be connected to, while another one serves.

use crate::failure::connect_failure_text;
use crate::worker::state::Worker;
use proxy_health::HealthCause;
use proxy_plan::UpstreamPlan;
use proxy_pool::ConnectError;

/// Records a connect that failed by the fault of the target at `position`.
#[cold]
pub(crate) fn failed(
    worker: &Worker,
    upstream: &UpstreamPlan,
    position: u16,
    fault: &ConnectError,
) {
    let Some(target) = upstream.targets.get(usize::from(position)) else {
        return;
    };
    let state = &target.state;
    if state.causes().contains(HealthCause::Connect) {
        return;
    }
    let elapsed = worker.time.elapsed();
    state
        .connect_backoff()
        .fail(worker.time.process_ns(elapsed));
    let last_error = format!("connect: {}", connect_failure_text(fault));
    state.fail(
        HealthCause::Connect,
        &last_error,
        worker.time.time_of_day(elapsed),
    );
    worker.shared.target_changes.note();
    worker.shared.health_changes.notify_one();
}

/// Records that the target at `position` has accepted a connection.
pub(crate) fn succeeded(worker: &Worker, upstream: &UpstreamPlan, position: u16) {
    let Some(target) = upstream.targets.get(usize::from(position)) else {
        return;
    };
    target.state.connect_backoff().succeed();
    if target.state.causes().contains(HealthCause::Connect) {
        target.state.clear(HealthCause::Connect);
        worker.shared.target_changes.note();
        worker.shared.health_changes.notify_one();
    }
}
