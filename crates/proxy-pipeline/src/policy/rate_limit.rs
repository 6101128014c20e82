//! Refuses requests above a rate limit.

use crate::exchange::Exchange;
use crate::limits::route_limits::{RateLimitStatus, RateRule, RateSubject};
use crate::record::error_log::note_observed;
use crate::worker::state::Worker;
use http::uri::PathAndQuery;
use proxy_errors::{Detail, Problem};
use proxy_limits::{ClientKey, RateDecision};
use proxy_plan::RateStage;
use proxy_routing::{forgiving_path, is_plain_path};
use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

/// Result of the local check; a shared store may have to be queried: see [`check_shared`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    Whole,
    NotShared,
}

/// Takes a token of each rate limit that concerns the request, unless one of them is in a store.
#[inline]
pub(crate) fn check(
    exchange: &mut Exchange,
    route: usize,
    stage: RateStage,
) -> Result<Checked, Problem> {
    let limited = exchange.active().limits.get(route);
    let rates = limited.map_or(&[][..], |limits| &limits.rates);
    if rates.is_empty() {
        return Ok(Checked::Whole);
    }
    let mut stage_rules = rates.iter().filter(|rule| rule.stage == stage);
    if stage_rules.any(|rule| rule.shared.is_some()) {
        return Ok(Checked::NotShared);
    }
    let now = match stage {
        // No time has passed since the request began.
        RateStage::First => exchange.began(),
        RateStage::AfterCredentials | RateStage::AfterAgents => exchange.worker().time.elapsed(),
    };
    take_tokens(exchange, route, stage, now, None)?;
    Ok(Checked::Whole)
}

/// Checks the limits if a store decides on one of them.
pub(crate) async fn check_shared(
    exchange: &mut Exchange,
    route: usize,
    stage: RateStage,
) -> Result<(), Problem> {
    let active = Rc::clone(exchange.active());
    let limited = active.limits.get(route);
    let rates = limited.map_or(&[][..], |limits| &limits.rates);
    let answer = {
        let path = path(exchange);
        let subject = subject(exchange, &path);
        let mut stage_rules = rates.iter().filter(|rule| rule.stage == stage);
        stage_rules.find_map(|rule| rule.ask(subject))
    };
    let decided = match answer {
        Some(answer) => answer.await,
        None => None,
    };
    let now = exchange.worker().time.elapsed();
    take_tokens(exchange, route, stage, now, decided)
}

/// Checks the limits of `stage`, in a store if need be.
pub(crate) async fn check_stage(
    exchange: &mut Exchange,
    route: usize,
    stage: RateStage,
) -> Result<(), Problem> {
    if check(exchange, route, stage)? == Checked::NotShared {
        check_shared(exchange, route, stage).await?;
    }
    Ok(())
}

/// Shows the limit to a request that is refused before the limit's stage, as every response of a
/// limited route does. Such a request takes no token and has no verified key: it sees the bucket of
/// requests without the field.
#[cold]
pub(crate) fn show_later(exchange: &mut Exchange) {
    let record = &exchange.completion.record;
    let Some(route) = record.parts.route.filter(|_| record.rate.is_none()) else {
        return;
    };
    let active = Rc::clone(exchange.active());
    let rules = active
        .limits
        .get(route)
        .map_or(&[][..], |limits| &limits.rates);
    let Some(rule) = rules.iter().find(|rule| rule.stage != RateStage::First) else {
        return;
    };
    let worker = Rc::clone(exchange.worker());
    let now = worker.time.elapsed();
    let now_ns = worker.time.shared_at(&worker.shared.clock, now);
    let decision = rule.peek_without_field(now_ns);
    let status = decision.map(|decision| RateLimitStatus::new(decision, worker.time.unix(now)));
    exchange.record().rate = status;
}

fn path(exchange: &Exchange) -> Cow<'_, str> {
    let raw = exchange.head.uri.path_and_query();
    let raw = raw.map_or("/", PathAndQuery::path);
    if is_plain_path(raw) {
        Cow::Borrowed(raw)
    } else {
        forgiving_path(raw).0
    }
}

fn subject<'a>(exchange: &'a Exchange, path: &'a str) -> RateSubject<'a> {
    RateSubject {
        client: ClientKey::from(exchange.completion.record.client_ip),
        headers: &exchange.head.headers,
        path,
    }
}

/// Takes the tokens at `now`, since the worker's start. `decided` is the decision of a store about
/// the limit that it holds.
fn take_tokens(
    exchange: &mut Exchange,
    route: usize,
    stage: RateStage,
    now: Duration,
    decided: Option<RateDecision>,
) -> Result<(), Problem> {
    let active = Rc::clone(exchange.active());
    let rules = active
        .limits
        .get(route)
        .map_or(&[][..], |limits| &limits.rates);
    let worker = Rc::clone(exchange.worker());
    let now_ns = worker.time.shared_at(&worker.shared.clock, now);
    let path = path(exchange);
    let subject = subject(exchange, &path);
    let mut nearest: Option<RateDecision> = None;
    let mut refusal = None;
    let mut observed = Vec::new();
    for rule in rules.iter().filter(|rule| rule.stage == stage) {
        let own = rule.admit(subject, now_ns);
        let decision = decided.filter(|_| rule.shared.is_some()).unwrap_or(own);
        if decision.admitted {
            let is_nearer = |other: RateDecision| decision.remaining < other.remaining;
            if nearest.is_none_or(is_nearer) {
                nearest = Some(decision);
            }
        } else if rule.observe_only {
            observed.push(problem(rule, decision));
            nearest.get_or_insert(decision);
        } else {
            nearest = Some(decision);
            refusal = Some(problem(rule, decision));
            break;
        }
    }
    record_observed(exchange, &worker, &observed, now);
    if let Some(decision) = nearest {
        let status = RateLimitStatus::new(decision, worker.time.unix(now));
        let shown = &mut exchange.record().rate;
        if shown.as_ref().is_none_or(|shown| !shown.is_nearer(&status)) {
            *shown = Some(status);
        }
    }
    refusal.map_or(Ok(()), Err)
}

/// Writes the refusals of limits that only observe to the log.
fn record_observed(exchange: &Exchange, worker: &Worker, observed: &[Problem], now: Duration) {
    for problem in observed {
        let context = exchange.completion.limit_context(problem, now);
        note_observed(worker, problem, &context);
    }
}

fn problem(rule: &RateRule, decision: RateDecision) -> Problem {
    let limit = u64::from(rule.events);
    // The bucket is empty: in this period there is at least one more than the rate.
    let detail = Detail::Limit {
        current: limit + 1,
        limit,
    };
    Problem::new(rule.reason, detail).with_retry_after(decision.retry_after)
}
