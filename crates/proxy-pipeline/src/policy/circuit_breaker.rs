//! Refuses requests to an upstream that keeps failing, and records in its breaker how each request
//! ended.

use crate::exchange::Exchange;
use crate::record::exchange_record::ExchangeKind;
use proxy_errors::{Detail, Problem, Reason};
use proxy_health::BreakerOpen;
use proxy_plan::{RoutePlan, UpstreamPlan};

/// Refuses a request while its route's breaker is open. Takes no permit: the request may have to
/// wait in the queue or for agents first.
pub(crate) fn check(
    exchange: &Exchange,
    route: &RoutePlan,
    upstream: &UpstreamPlan,
) -> Result<(), Problem> {
    let Some(breaker) = &route.breaker else {
        return Ok(());
    };
    let now_ns = exchange.worker().time.process_ns(exchange.began());
    breaker
        .check(now_ns)
        .map_err(|open| refused(open, upstream))
}

/// Takes the breaker's permit for a request that is about to be sent. A permit dropped with its
/// request, because the client disconnected, counts as no result. A shadow copy takes none: the
/// breaker belongs to the route's upstream, and copies go to another one.
pub(crate) fn admit(
    exchange: &mut Exchange,
    route: &RoutePlan,
    upstream: &UpstreamPlan,
) -> Result<(), Problem> {
    let Some(breaker) = &route.breaker else {
        return Ok(());
    };
    if exchange.completion.record.kind == ExchangeKind::Copy {
        return Ok(());
    }
    let time = &exchange.worker().time;
    let now_ns = time.process_ns(time.elapsed());
    let permit = breaker.admit(now_ns);
    exchange.record().breaker = Some(permit.map_err(|open| refused(open, upstream))?);
    Ok(())
}

/// Records the result of the request's last attempt, once for each request. `None`
/// counts nothing: the failure is not the target's.
pub(crate) fn record_outcome(exchange: &mut Exchange, failed: Option<bool>) {
    let record = exchange.record();
    let probe = || record.upload.as_ref()?.take_probe();
    let Some(permit) = record.breaker.take().or_else(probe) else {
        return;
    };
    let time = &exchange.worker().time;
    let now_ns = time.process_ns(time.elapsed());
    match failed {
        Some(false) => permit.success(now_ns),
        Some(true) => permit.failure(now_ns),
        None => None,
    };
}

fn refused(open: BreakerOpen, upstream: &UpstreamPlan) -> Problem {
    let BreakerOpen { retry_after } = open;
    let problem = Problem::new(Reason::BreakerOpen, Detail::name(&*upstream.name));
    problem.with_retry_after(retry_after)
}
