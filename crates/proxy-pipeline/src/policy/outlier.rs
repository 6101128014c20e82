//! Passive health: ejects a target for a time after requests to it have failed.

use crate::exchange::Exchange;
use proxy_health::HealthCause;
use proxy_plan::{TargetPlan, UpstreamPlan};

/// Takes in whether an attempt on the target called last has failed.
#[inline]
pub(crate) fn record(exchange: &Exchange, upstream: &UpstreamPlan, failed: bool) {
    let Some(settings) = &upstream.outlier_detection else {
        return;
    };
    let called = exchange.completion.record.parts.upstream;
    let target = called.and_then(|(_, target)| upstream.targets.get(usize::from(target)));
    let Some(target) = target else {
        return;
    };
    let time = &exchange.worker().time;
    let now_ns = time.process_ns(time.elapsed());
    if target.state.outlier().record(failed, settings, now_ns) {
        let peers = upstream.targets.iter();
        let peers = peers.map(|peer| peer.state.outlier());
        if target.state.outlier().try_eject(peers, settings, now_ns) {
            eject(exchange, target);
        }
    }
}

#[cold]
fn eject(exchange: &Exchange, target: &TargetPlan) {
    let worker = exchange.worker();
    let now = worker.time.time_of_day(worker.time.elapsed());
    let why = "requests to it have failed; it is ejected for a time";
    target.state.fail(HealthCause::Ejection, why, now);
    worker.shared.health_changes.notify_one();
}
