//! The life of one request, top to bottom. Read this file first.

use crate::body::Body;
use crate::client::Stream;
use crate::exchange::Exchange;
use crate::policy::{expectation, in_flight};
use crate::state::Worker;
use crate::{builtin, forward, panic};
use http::header::{CONTENT_LENGTH, HOST};
use http::request::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use proxy_errors::Problem;
use proxy_plan::{Outcome, Plan, RequestHead};
use std::rc::Rc;

/// Answers one request; whatever happens, the client gets a response.
pub async fn handle(
    worker: Rc<Worker>,
    stream: Stream,
    request: Request<Incoming>,
) -> Response<Body> {
    // A request keeps the plan it began with, even if a reload happens meanwhile.
    let active = worker.active();
    let (head, body) = request.into_parts();
    let mut exchange = Exchange::begin(worker, Rc::clone(&active), stream, &head);
    let served = panic::contain(serve(&active.plan, &mut exchange, head, body)).await;
    let response = match served {
        Ok(response) => response,
        Err(problem) => exchange.refuse(problem),
    };
    exchange.finish(response)
}

async fn serve(
    plan: &Plan,
    exchange: &mut Exchange,
    head: Parts,
    body: Incoming,
) -> Result<Response<Body>, Problem> {
    let now = exchange.facts().began;
    let active = Rc::clone(&exchange.closing.active);
    let decision = plan.decide(&look_at(exchange, &head), &*active, now);
    let Some(route) = decision.route else {
        return refused(decision.outcome);
    };
    exchange.enter(route);
    expectation::check(&head.headers, exchange.found)?;
    match decision.outcome {
        Outcome::Refuse(problem) => Err(problem),
        Outcome::Answer(handler) => {
            let worker = exchange.worker();
            let unix_time = worker.time.unix(now);
            let lifecycle = &worker.shared.lifecycle;
            let answer = builtin::answer(handler, lifecycle, &head, unix_time)?;
            Ok(exchange.answer(answer))
        }
        Outcome::Forward(upstream, target) => {
            in_flight::admit(exchange)?;
            let destination = forward::Destination {
                route,
                upstream,
                target,
                total: decision.end_by.map(|end| end.saturating_sub(now)),
            };
            forward::send(exchange, destination, head, body).await
        }
    }
}

fn look_at<'h>(exchange: &Exchange, head: &'h Parts) -> RequestHead<'h> {
    let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    let authority = head.uri.authority().map(http::uri::Authority::as_str);
    let length = text(CONTENT_LENGTH);
    RequestHead {
        listener: exchange.client().listener.get(),
        method: &head.method,
        host: authority.or_else(|| text(HOST)).unwrap_or_default(),
        target: head.uri.path_and_query(),
        headers: &head.headers,
        content_length: length.and_then(|length| length.parse().ok()),
    }
}

fn refused(outcome: Outcome<'_>) -> Result<Response<Body>, Problem> {
    match outcome {
        Outcome::Refuse(problem) => Err(problem),
        Outcome::Answer(_) | Outcome::Forward(..) => Err(Problem::new(
            proxy_errors::Reason::InternalError,
            proxy_errors::Detail::text("a decision without a route"),
        )),
    }
}
