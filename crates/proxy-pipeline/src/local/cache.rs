//! Responses from the store, and into it. What may be stored and served is decided by `proxy-cache`; this is the order
//! in which a request asks for that.

mod fetch;
pub(crate) mod invalidation;
mod lookup;
mod outcome;
mod refresh;
mod served;

pub(crate) use outcome::{Cached, CachedRoute};
pub(crate) use served::mark;

use crate::exchange::Exchange;
use crate::failure::timeout_problem;
use crate::policy::admission;
use crate::policy::in_flight::Holders;
use crate::response::body::Body;
use crate::response::local_reply::Answer;
use crate::worker::cache_counters::CacheOutcome;
use bytes::Bytes;
use fetch::Fetch;
use http::{Method, Response, StatusCode};
use lookup::Lookup;
use proxy_cache::{
    CacheStatus, Decision, FillWait, Found, Joined, MissReason, StoredResponse, decide,
};
use proxy_clock::Timer;
use proxy_errors::Problem;
use proxy_plan::Outcome;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Responses of others that one request waits for: a fetch may end with its client.
const MAX_WAITS: usize = 3;

/// Answers the request from the store, or fetches its response for the store. The request may be forwarded without the
/// store instead.
pub(crate) async fn answer(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    outcome: &Outcome<'_>,
    end_by: Option<Duration>,
) -> Result<Cached, Problem> {
    let lookup = match Lookup::read(exchange, cached) {
        Ok(lookup) => lookup,
        Err(reason) => {
            outcome::record(exchange, cached, CacheOutcome::Bypass);
            return Ok(Cached::Bypassed(CacheStatus {
                forwarded: Some("bypass"),
                detail: Some(reason.name()),
                ..CacheStatus::default()
            }));
        }
    };
    let is_shared = exchange.head.method == Method::GET && !lookup.is_partial;
    let collapse = cached.settings.settings.collapse;
    let mut waits = 0;
    let mut found = look(exchange, cached, &lookup);
    loop {
        let looked = serve(exchange, cached, &lookup, (&found, waits > 0), end_by).await?;
        let missed = match looked {
            ControlFlow::Break(response) => return Ok(Cached::Response(response)),
            ControlFlow::Continue(reason) => reason,
        };
        let joined = (is_shared && waits < MAX_WAITS).then(|| {
            let headers = exchange.head.headers.as_map();
            let now = lookup::now(exchange);
            cached.store.join(&lookup.key, headers, now)
        });
        let fill = match joined {
            Some(Joined::Wait(wait)) if !collapse.is_zero() => {
                match wait_for(exchange, wait, collapse, end_by).await? {
                    Some(fetched) => {
                        waits += 1;
                        found = after_wait(exchange, cached, &lookup, fetched);
                    }
                    // It took too long.
                    None => waits = MAX_WAITS,
                }
                continue;
            }
            Some(Joined::Fill(fill)) => Some(fill),
            Some(Joined::Wait(_)) | None => None,
        };
        let earlier = found.response.filter(|_| missed == MissReason::Stale);
        if fill.is_none() && (!is_shared || earlier.is_none()) {
            outcome::record(exchange, cached, CacheOutcome::Miss);
            return Ok(Cached::Bypassed(CacheStatus {
                forwarded: Some(missed.name()),
                ..CacheStatus::default()
            }));
        }
        // Without a place in the store a stale response may still stand in for an error.
        let fetch = Fetch {
            cached,
            fill,
            earlier,
            missed,
        };
        let response = fetch.run(exchange, outcome, end_by).await?;
        return Ok(Cached::Response(response));
    }
}

fn look(exchange: &Exchange, cached: CachedRoute<'_>, lookup: &Lookup) -> Found {
    let headers = exchange.head.headers.as_map();
    cached.store.find(&lookup.key, headers)
}

/// Sends a stored response, if one may be; else the reason why none may.
async fn serve(
    exchange: &mut Exchange,
    cached: CachedRoute<'_>,
    lookup: &Lookup,
    (found, is_collapsed): (&Found, bool),
    end_by: Option<Duration>,
) -> Result<ControlFlow<Response<Body>, MissReason>, Problem> {
    let now = lookup::now(exchange);
    let decision = decide(&lookup.directives, found, &cached.settings.settings, now);
    let (stored, outcome, detail) = match (decision, &found.response) {
        (Decision::Hit, Some(stored)) => (stored, CacheOutcome::Hit, None),
        (Decision::StaleWhileRevalidate, Some(stored)) => {
            refresh::begin(exchange, cached, lookup, stored, now);
            (stored, CacheOutcome::Stale, Some("stale-while-revalidate"))
        }
        (Decision::OnlyIfCached, _) => {
            let answer = Answer {
                status: StatusCode::GATEWAY_TIMEOUT,
                content_type: None,
                body: Bytes::new(),
            };
            return Ok(ControlFlow::Break(exchange.answer(answer)));
        }
        (Decision::Miss(reason), _) => return Ok(ControlFlow::Continue(reason)),
        (Decision::Revalidate | Decision::Hit | Decision::StaleWhileRevalidate, _) => {
            return Ok(ControlFlow::Continue(MissReason::Stale));
        }
    };
    let status = CacheStatus {
        is_hit: true,
        rest: Some(stored.freshness.rest(now)),
        is_collapsed,
        detail,
        ..CacheStatus::default()
    };
    outcome::record(exchange, cached, outcome);
    // It counts among the requests in flight like a file.
    let holders = Holders {
        route: cached.route,
        upstream: None,
    };
    admission::enter(exchange, holders, end_by).await?;
    let response = served::from_head(exchange, cached, stored, &status);
    Ok(ControlFlow::Break(response))
}

/// What is stored after a wait: the response that was waited for counts even if there was no room for it.
fn after_wait(
    exchange: &Exchange,
    cached: CachedRoute<'_>,
    lookup: &Lookup,
    response: Option<Arc<StoredResponse>>,
) -> Found {
    let headers = exchange.head.headers.as_map();
    let found = look(exchange, cached, lookup);
    let fetched = response.filter(|response| response.variant.matches(headers));
    Found {
        response: fetched.or(found.response),
        has_other_variants: found.has_other_variants,
    }
}

/// The response to another request; `None` if it took longer than `most`, and within that none if there is nothing to
/// be shared.
async fn wait_for(
    exchange: &Exchange,
    wait: FillWait,
    most: Duration,
    end_by: Option<Duration>,
) -> Result<Option<Option<Arc<StoredResponse>>>, Problem> {
    let since = exchange.worker().time.elapsed();
    let timers = exchange.timers(end_by.map(|end| end.saturating_sub(since)));
    timers.start(Timer::ResponseHeader, most);
    let mut wait = pin!(wait);
    let waited = poll_fn(|cx| {
        if let Poll::Ready(response) = wait.as_mut().poll(cx) {
            return Poll::Ready(Ok(Some(response)));
        }
        match timers.deadline().take_expired() {
            Some((timer @ Timer::Total, after)) => Poll::Ready(Err(timeout_problem(timer, after))),
            Some(_) => Poll::Ready(Ok(None)),
            None => Poll::Pending,
        }
    });
    let waited = waited.await;
    timers.stop();
    waited
}
