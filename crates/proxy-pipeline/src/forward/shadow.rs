//! Copies of requests for a second upstream. A copy is a separate task that its request never waits
//! for; its response is read and dropped.

use crate::exchange::Exchange;
use crate::forward;
use crate::forward::destination::Destination;
use crate::headers::inbound_head::InboundHead;
use crate::headers::indexed_headers::KnownHeaders;
use crate::policy::tunnel_connections;
use crate::response::body::Body;
use crate::upload::client_body::{ClientBody, HeldBody};
use crate::worker::balancer_view::WorkerView;
use crate::worker::shadow_counters::ShadowCounters;
use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Method, Request, Uri};
use http_body::Body as _;
use proxy_http1::RawTarget;
use proxy_limits::Permit;
use proxy_plan::{Outcome, RoutePlan};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::oneshot;

/// Timeout of a copy, if its route has none.
const COPY_TIME: Duration = Duration::from_mins(1);
const HOST_SUFFIX: &str = "-shadow";

/// A copy in flight.
struct Copy {
    exchange: Exchange,
    /// Receives the request's body once it is complete.
    body: Option<oneshot::Receiver<HeldBody>>,
    route: usize,
    counters: ShadowCounters,
    _place: Permit,
}

/// Begins a copy of the request, if its route selects it.
pub(crate) fn begin(exchange: &mut Exchange, route: &RoutePlan) {
    let Some(shadow) = route.shadow else {
        return;
    };
    let head = &exchange.head;
    let is_upgrade = head.method == Method::CONNECT
        || head.headers.has(KnownHeaders::UPGRADE)
        || tunnel_connections::is_wanted(head);
    let sampled = exchange.worker().ids.random() < shadow.share || shadow.share == u64::MAX;
    if is_upgrade || !sampled {
        return;
    }
    let counters = exchange.active().shadows.get(route.index);
    let Some(Some(counters)) = counters.cloned() else {
        return;
    };
    let announced = head.headers.content_length().unwrap_or_default();
    let place = exchange.worker().shadows.acquire().ok();
    let Some(place) = place.filter(|_| announced <= route.max_body_buffer_bytes) else {
        return counters.dropped.add(1);
    };
    let copy = exchange.copy(marked(head));
    let body = match exchange.body.take() {
        Some(body) if !body.is_end_stream() => {
            let (sender, receiver) = oneshot::channel();
            let copied = exchange.worker().body_buffer();
            exchange.body = Some(body.copied(copied, route.max_body_buffer_bytes, sender));
            Some(receiver)
        }
        body => {
            exchange.body = body;
            None
        }
    };
    tokio::task::spawn_local(run(Copy {
        exchange: copy,
        body,
        route: route.index,
        counters,
        _place: place,
    }));
}

async fn run(copy: Copy) {
    let Copy {
        mut exchange,
        body,
        route,
        counters,
        _place,
    } = copy;
    if let Some(body) = body {
        match body.await {
            Ok(held) => exchange.body = Some(ClientBody::Held(held)),
            // The body was too large or incomplete.
            Err(_) => return counters.dropped.add(1),
        }
    }
    let deadline = exchange.deadline();
    let _entry = exchange.worker().timers.register(Rc::clone(&deadline));
    let mut sending = pin!(send(&mut exchange, route));
    let answered = poll_fn(|cx| {
        deadline.watch(cx.waker());
        sending.as_mut().poll(cx)
    });
    match answered.await {
        Some(()) => counters.answered.add(1),
        None => counters.failed.add(1),
    }
}

/// Sends the copy and reads its response; `None` without a complete response.
async fn send(exchange: &mut Exchange, route: usize) -> Option<()> {
    let active = Rc::clone(exchange.active());
    let route = active.plan.routes().get(route)?;
    let worker = Rc::clone(exchange.worker());
    let states = WorkerView {
        worker: &worker,
        active: &active,
        now: worker.time.elapsed(),
    };
    let head = exchange.request_head();
    let chosen = active.plan.choose(route.shadow?.upstream, &head, &states);
    let Outcome::Forward(upstream, choice) = chosen else {
        return None;
    };
    let to = Destination {
        route,
        upstream,
        choice,
        total: Some(route.timeouts.total.unwrap_or(COPY_TIME)),
    };
    let response = forward::send(exchange, to).await.ok()?;
    read_to_the_end(response.into_body()).await
}

async fn read_to_the_end(mut body: Body) -> Option<()> {
    poll_fn(|cx| {
        loop {
            match Pin::new(&mut body).poll_frame(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_))) => return Poll::Ready(None),
                Poll::Ready(None) => return Poll::Ready(Some(())),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
}

/// A copy of `head` in origin form, with the mark on its host.
fn marked(head: &InboundHead) -> Parts {
    let (mut copy, ()) = Request::new(()).into_parts();
    copy.method = head.method.clone();
    copy.version = head.version;
    copy.headers = head.headers.as_map().clone();
    let target = head.uri.path_and_query().cloned();
    copy.uri = Uri::from(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
    if let Some(raw) = head.extensions.get::<RawTarget>() {
        copy.extensions.insert(raw.clone());
    }
    let authority = head.uri.authority().map(Authority::as_str);
    let host = head.headers.host().and_then(|host| host.to_str().ok());
    let host = authority.or(host).map(with_mark);
    if let Some(host) = host.and_then(|host| HeaderValue::try_from(host).ok()) {
        copy.headers.insert(HOST, host);
    }
    copy
}

/// `a.example:80` becomes `a.example-shadow:80`. An address in brackets is unchanged.
fn with_mark(host: &str) -> String {
    if host.starts_with('[') {
        return host.to_owned();
    }
    match host.split_once(':') {
        Some((name, port)) => format!("{name}{HOST_SUFFIX}:{port}"),
        None => format!("{host}{HOST_SUFFIX}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_follows_the_name() {
        for (host, with) in [
            ("a.example", "a.example-shadow"),
            ("a.example:80", "a.example-shadow:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(with_mark(host), with);
        }
    }
}
