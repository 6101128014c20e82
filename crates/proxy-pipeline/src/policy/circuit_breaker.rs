//! Refuses requests to an upstream that keeps failing, and tells its breaker how each request went.

use crate::exchange::Exchange;
use http::StatusCode;
use proxy_errors::{Detail, Problem, Reason};
use proxy_health::BreakerOpen;
use proxy_plan::{RoutePlan, UpstreamPlan};

/// Takes the breaker's permit, which is dropped with the request: a client that leaves counts as nothing.
pub(crate) fn admit(
    exchange: &mut Exchange,
    route: &RoutePlan,
    upstream: &UpstreamPlan,
) -> Result<(), Problem> {
    let Some(breaker) = &route.breaker else {
        return Ok(());
    };
    let now_ns = exchange.worker().time.process_ns(exchange.began());
    match breaker.admit(now_ns) {
        Ok(permit) => {
            exchange.record().breaker = Some(permit);
            Ok(())
        }
        Err(BreakerOpen { retry_after }) => {
            let detail = Detail::name(&*upstream.name);
            let problem = Problem::new(Reason::BreakerOpen, detail);
            Err(problem.with_retry_after(retry_after))
        }
    }
}

/// Settles the permit by what the request's last attempt came to: once for each request.
pub(crate) fn settle(exchange: &mut Exchange, outcome: Result<StatusCode, &Problem>) {
    let Some(permit) = exchange.record().breaker.take() else {
        return;
    };
    let time = &exchange.worker().time;
    let now_ns = time.process_ns(time.elapsed());
    let succeeded = match outcome {
        Ok(status) => Some(!status.is_server_error()),
        Err(problem) if is_failure(problem.reason()) => Some(false),
        // The client's doing, or the proxy's own.
        Err(_) => None,
    };
    match succeeded {
        Some(true) => permit.success(now_ns),
        Some(false) => permit.failure(now_ns),
        None => None,
    };
}

fn is_failure(reason: Reason) -> bool {
    reason == Reason::RequestTimeout
        || (reason != Reason::NoFreeConnection && reason.counts_against_upstream())
}
