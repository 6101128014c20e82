//! The fetch of a new response while a stale one is served. [RFC 5861 §3]

use super::fetch::{is_personal, is_replaceable_error, set_conditions};
use super::lookup::Lookup;
use super::store_response::{CachePolicy, FetchRequest, store_response};
use crate::exchange::Exchange;
use crate::forward;
use crate::forward::destination::Destination;
use crate::policy::circuit_breaker;
use crate::worker::balancer_view::WorkerView;
use http::header::{HOST, IF_RANGE, RANGE};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use proxy_cache::{Fill, Joined, StoredResponse, Times};
use proxy_limits::Permit;
use proxy_plan::Outcome;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a refresh on a route without `request-secs`.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// A fetch in progress, in a task separate from the request that began it.
struct Refresh {
    /// A copy of the client's exchange.
    exchange: Exchange,
    /// Index of the route.
    route: usize,
    fill: Fill,
    earlier: Arc<StoredResponse>,
    client_headers: HeaderMap,
    is_personal: bool,
    _permit: Permit,
}

/// Begins a fetch, unless the same response is being fetched or the worker's limit on refreshes is
/// reached.
pub(super) fn begin(exchange: &Exchange, lookup: &Lookup<'_>, stored: &Arc<StoredResponse>) {
    let Joined::Fill(fill) = lookup.join(exchange) else {
        return;
    };
    let Ok(permit) = exchange.worker().refreshes.acquire() else {
        return;
    };
    let cached = lookup.cached;
    let mut copy = exchange.copy(whole_get(exchange));
    // `Location` is written back as for the request itself.
    copy.client_origin.clone_from(&exchange.client_origin);
    tokio::task::spawn_local(run(Refresh {
        exchange: copy,
        route: cached.route.index,
        fill,
        earlier: Arc::clone(stored),
        client_headers: exchange.head.headers.as_map().clone(),
        is_personal: is_personal(exchange, cached.settings),
        _permit: permit,
    }));
}

/// Runs a refresh within its deadline.
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

/// Fetches the response. A failure changes nothing: the stored response is served as long as it may
/// be.
async fn fetch(refresh: Refresh) {
    let Refresh {
        mut exchange,
        route,
        fill,
        earlier,
        client_headers,
        is_personal,
        _permit,
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
    let destination = Destination {
        route,
        upstream,
        choice,
        total: Some(route.timeouts.total.unwrap_or(DEFAULT_TIMEOUT)),
    };
    let requested_at = exchange.worker().time.clock_reading();
    exchange.is_for_store = true;
    let Ok(response) = forward::send(&mut exchange, destination).await else {
        return;
    };
    if is_replaceable_error(response.status()) {
        return;
    }
    let request = FetchRequest {
        headers: &client_headers,
        is_personal,
        times: Times {
            requested_at,
            received_at: exchange.worker().time.clock_reading(),
        },
    };
    let policy = CachePolicy { route, settings };
    let (fill, earlier) = (Some(fill), Some(earlier));
    // A body that is still arriving is read by a separate task.
    drop(store_response(
        &exchange, policy, fill, earlier, request, response,
    ));
}

/// The head of the request as a GET in origin form, without ranges. [RFC 9112 §3.2.1]
fn whole_get(exchange: &Exchange) -> Parts {
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
