//! Passive health: ejects a target for a time after requests to it have failed.

use crate::worker::state::Worker;
use proxy_health::HealthCause;
use proxy_plan::{TargetPlan, UpstreamPlan};

/// Records whether an attempt on the target at `position` failed; ejects it after too many
/// failures.
#[inline]
pub(crate) fn record(worker: &Worker, upstream: &UpstreamPlan, position: u16, failed: bool) {
    let Some(settings) = &upstream.outlier_detection else {
        return;
    };
    let Some(target) = upstream.targets.get(usize::from(position)) else {
        return;
    };
    let time = &worker.time;
    let now_ns = time.process_ns(time.elapsed());
    if target.state.outlier().record(failed, settings, now_ns) {
        let peers = upstream.targets.iter();
        let peers = peers.map(|peer| peer.state.outlier());
        if target.state.outlier().try_eject(peers, settings, now_ns) {
            eject(worker, target);
        }
    }
}

#[cold]
fn eject(worker: &Worker, target: &TargetPlan) {
    let now = worker.time.time_of_day(worker.time.elapsed());
    let why = "requests to it have failed; it is ejected for a time";
    target.state.fail(HealthCause::Ejection, why, now);
    worker.shared.target_changes.note();
    worker.shared.health_changes.notify_one();
}
