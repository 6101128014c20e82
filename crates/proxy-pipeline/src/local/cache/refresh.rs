//! The fetch of a new response while a stale one is served. [RFC 5861 §3]

use super::fetch::{is_failure, is_personal, set_conditions};
use super::lookup::{self, Lookup};
use super::outcome::CachedRoute;
use super::storing::{Caching, Sent, receive};
use crate::exchange::Exchange;
use crate::forward;
use crate::forward::destination::Destination;
use crate::policy::circuit_breaker;
use crate::worker::balancer_view::WorkerView;
use http::header::{HOST, IF_RANGE, RANGE};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use proxy_cache::{ClockReading, Fill, Joined, StoredResponse, Times};
use proxy_limits::Permit;
use proxy_plan::Outcome;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a fetch, if its route has none.
const FETCH_TIME: Duration = Duration::from_mins(1);

/// A fetch in progress, in a task separate from the request that began it.
struct Refresh {
    exchange: Exchange,
    route: usize,
    fill: Fill,
    earlier: Arc<StoredResponse>,
    sent: HeaderMap,
    is_personal: bool,
    _place: Permit,
}

/// Begins a fetch, unless one is under way or too many are.
pub(super) fn begin(
    exchange: &Exchange,
    cached: CachedRoute<'_>,
    lookup: &Lookup,
    stored: &Arc<StoredResponse>,
    now: ClockReading,
) {
    let sent = exchange.head.headers.as_map();
    let Joined::Fill(fill) = cached.store.join(&lookup.key, sent, now) else {
        return;
    };
    let Ok(place) = exchange.worker().refreshes.acquire() else {
        return;
    };
    let mut copy = exchange.copy(head_of(exchange));
    // Locations are written back as for the request itself.
    copy.client_origin.clone_from(&exchange.client_origin);
    tokio::task::spawn_local(run(Refresh {
        exchange: copy,
        route: cached.route.index,
        fill,
        earlier: Arc::clone(stored),
        sent: sent.clone(),
        is_personal: is_personal(exchange, cached.settings),
        _place: place,
    }));
}

async fn run(refresh: Refresh) {
    let deadline = refresh.exchange.deadline();
    let worker = Rc::clone(refresh.exchange.worker());
    let _entry = worker.timers.register(Rc::clone(&deadline));
    let mut fetching = pin!(fetch(refresh));
    poll_fn(|cx| {
        deadline.watch(cx.waker());
        fetching.as_mut().poll(cx)
    })
    .await;
}

/// Fetches the response. A failure leaves the stored one as it is.
async fn fetch(refresh: Refresh) {
    let Refresh {
        mut exchange,
        route,
        fill,
        earlier,
        sent,
        is_personal,
        _place,
    } = refresh;
    let active = Rc::clone(exchange.active());
    let Some(route) = active.plan.routes().get(route) else {
        return;
    };
    let (Some(settings), Some(position)) = (&route.cache, route.service.upstream()) else {
        return;
    };
    let worker = Rc::clone(exchange.worker());
    let states = WorkerView {
        worker: &worker,
        active: &active,
        now: worker.time.elapsed(),
    };
    let chosen = active
        .plan
        .choose(position, &exchange.request_head(), &states);
    let Outcome::Forward(upstream, choice) = chosen else {
        return;
    };
    if circuit_breaker::check(&exchange, route, upstream).is_err() {
        return;
    }
    set_conditions(&mut exchange, Some(&earlier));
    let to = Destination {
        route,
        upstream,
        choice,
        total: Some(route.times.total.unwrap_or(FETCH_TIME)),
    };
    let requested_at = lookup::now(&exchange);
    exchange.is_for_store = true;
    let Ok(response) = forward::send(&mut exchange, to).await else {
        return;
    };
    if is_failure(response.status()) {
        return;
    }
    let sent = Sent {
        headers: &sent,
        is_personal,
        times: Times {
            requested_at,
            received_at: lookup::now(&exchange),
        },
    };
    // A body that is not complete yet is read by a task of its own.
    let fill = (Some(fill), Some(earlier));
    let caching = Caching { route, settings };
    drop(receive(&exchange, caching, fill, sent, response));
}

/// The head of a GET in the form of an origin, without ranges.
fn head_of(exchange: &Exchange) -> Parts {
    let head = &exchange.head;
    let (mut copy, ()) = Request::new(()).into_parts();
    copy.method = Method::GET;
    copy.version = head.version;
    copy.headers = head.headers.as_map().clone();
    copy.headers.remove(RANGE);
    copy.headers.remove(IF_RANGE);
    let target = head.uri.path_and_query().cloned();
    copy.uri = Uri::from(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
    let authority = head.uri.authority().map(Authority::as_str);
    if let Some(host) = authority.and_then(|host| HeaderValue::try_from(host).ok()) {
        copy.headers.insert(HOST, host);
    }
    copy
}
