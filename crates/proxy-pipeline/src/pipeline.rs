//! The handling of a request, in order. Read this file first.

use crate::body::Body;
use crate::client_body::ClientBody;
use crate::connection_info::RequestStream;
use crate::exchange::Exchange;
use crate::policy::{
    circuit_breaker, client_certificate, expectation, grpc_timeout, http2_head, in_flight,
    max_forwards, misdirected, rate_limit, route_connections,
};
use crate::state::Worker;
use crate::view::WorkerView;
use crate::{builtin, files, forward, panic};
use http::Response;
use http::request::Parts;
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::{Outcome, RoutePlan};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// Handles one request, which begins now; it always returns a response.
pub fn handle(
    worker: Rc<Worker>,
    stream: RequestStream,
    head: Parts,
    body: ClientBody,
) -> impl Future<Output = Response<Body>> {
    let mut exchange = Exchange::begin(worker, stream, head, body);
    async move {
        let served = panic::contain(pin!(serve(&mut exchange))).await;
        let response = match served {
            Ok(response) => response,
            Err(problem) => exchange.refuse(problem),
        };
        let Exchange {
            completion, known, ..
        } = exchange;
        completion.finish(&known, response)
    }
}

async fn serve(exchange: &mut Exchange) -> Result<Response<Body>, Problem> {
    // A request keeps the plan of its beginning, even across a reload.
    let active = Rc::clone(exchange.active());
    let now = exchange.began();
    http2_head::apply(exchange)?;
    let head = exchange.request_head();
    client_certificate::check(exchange.client(), &exchange.worker().time, now)?;
    misdirected::check(exchange.client(), head.host)?;
    let states = WorkerView {
        worker: exchange.worker(),
        active: &active,
        now,
    };
    let decision = active.plan.decide(&head, &states, now);
    let Some(route) = decision.route else {
        return refused(decision.outcome);
    };
    exchange.set_route(route);
    rate_limit::check(exchange, route.index)?;
    expectation::check(&exchange.head.headers, &exchange.known)?;
    match decision.outcome {
        Outcome::Refuse(problem) => Err(problem),
        Outcome::Answer(handler) => {
            let answer = builtin::answer(handler, exchange)?;
            Ok(exchange.answer(answer))
        }
        Outcome::Files => {
            let now = admit(exchange, route).await?;
            let total = decision.end_by.map(|end| end.saturating_sub(now));
            files::answer(exchange, route, total).await
        }
        Outcome::Forward(upstream, choice) => {
            max_forwards::spend(&mut exchange.head)?;
            circuit_breaker::admit(exchange, route, upstream)?;
            let now = admit(exchange, route).await?;
            let own = decision.end_by.map(|end| end.saturating_sub(now));
            let destination = forward::Destination {
                route,
                upstream,
                choice,
                total: grpc_timeout::bound(exchange, own),
            };
            forward::send(exchange, destination).await
        }
    }
}

/// Takes the request's places, for which it may have to wait. Gives the time after that.
async fn admit(exchange: &mut Exchange, route: &RoutePlan) -> Result<Duration, Problem> {
    route_connections::admit(exchange, route.index)?;
    if in_flight::try_admit(exchange) {
        return Ok(exchange.began());
    }
    // Boxed: it is rare, and would make every request's future larger.
    Box::pin(in_flight::wait(exchange)).await?;
    Ok(exchange.worker().time.elapsed())
}

fn refused(outcome: Outcome<'_>) -> Result<Response<Body>, Problem> {
    match outcome {
        Outcome::Refuse(problem) => Err(problem),
        Outcome::Answer(_) | Outcome::Files | Outcome::Forward(..) => {
            let detail = Detail::text("a decision without a route");
            Err(Problem::new(Reason::InternalError, detail))
        }
    }
}
