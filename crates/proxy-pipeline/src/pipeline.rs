//! The handling of a request, in order. Read this file first.

use crate::exchange::Exchange;
use crate::failure::panic;
use crate::forward::destination::Destination;
use crate::forward::shadow;
use crate::local::cache::{self, CacheResult};
use crate::local::{acme, answers, builtin, files};
use crate::policy::compression::{self, CompressionRequest};
use crate::policy::rate_limit::{self, Checked};
use crate::policy::{
    admission, client_certificate, credentials, expectation, grpc_timeout, http2_head, misdirected,
    tunnel_connections,
};
use crate::response::body::Body;
use crate::response::upgradable_response::Reply;
use crate::upload::client_body::ClientBody;
use crate::worker::active_plan::ActivePlan;
use crate::worker::balancer_view::WorkerView;
use crate::worker::connection_info::RequestStream;
use crate::worker::state::Worker;
use crate::{agents, forward};
use http::Response;
use http::request::Parts;
use proxy_errors::{Detail, Problem, Reason};
use proxy_http1::VerbatimFields;
use proxy_plan::{CredentialsPlan, Outcome, RateStage, RequestHead, RouteAgents, RoutePlan};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// Handles one request, which begins now; it always returns a reply. `fields` are the fields of
/// `head` if they are not in its map.
pub fn handle(
    worker: Rc<Worker>,
    stream: RequestStream,
    head: Parts,
    fields: Option<VerbatimFields>,
    body: ClientBody,
) -> impl Future<Output = Reply> {
    let mut exchange = Exchange::begin(worker, stream, head, fields, body);
    async move {
        let served = panic::contain(pin!(serve(&mut exchange))).await;
        let served = served.and_then(|response| check_tunnel(&mut exchange, response));
        let response = match served {
            Ok(response) => response,
            Err(problem) => {
                rate_limit::show_later(&mut exchange);
                exchange.refuse(problem)
            }
        };
        let Exchange {
            completion,
            is_grpc,
            ..
        } = exchange;
        Reply::finish(completion, is_grpc, response)
    }
}

/// Refuses a 2xx response to an HTTP/2 client that wants a tunnel, unless a target has switched: the
/// client would take its body for the tunnel's bytes. [RFC 8441 §4]
#[inline]
fn check_tunnel(
    exchange: &mut Exchange,
    response: Response<Body>,
) -> Result<Response<Body>, Problem> {
    let is_mistaken = !exchange.client().exclusive
        && tunnel_connections::is_wanted(&exchange.head)
        && response.status().is_success()
        && exchange.record().upgrade.is_none();
    if is_mistaken {
        let detail = Detail::text("the route answers without a target");
        return Err(Problem::new(Reason::UpgradeDeclined, detail));
    }
    Ok(response)
}

async fn serve(exchange: &mut Exchange) -> Result<Response<Body>, Problem> {
    if let Some(response) = acme::answer(exchange) {
        return Ok(response);
    }
    // A request keeps the plan of its beginning, even across a reload.
    let active = Rc::clone(exchange.active());
    let adapted = http2_head::apply(exchange);
    if let Some(recording) = &active.recording {
        exchange.record_head(recording);
    }
    let decided = adapted.and_then(|()| decide(exchange, &active));
    let Decided {
        route,
        outcome,
        end_by,
    } = match decided {
        Ok(decided) => decided,
        Err(problem) => return Err(count_unrouted(exchange, problem)),
    };
    exchange.set_route(route);
    let stage = RateStage::First;
    if rate_limit::check(exchange, route.index, stage)? == Checked::NotShared {
        Box::pin(rate_limit::check_shared(exchange, route.index, stage)).await?;
    }
    expectation::check(&exchange.head.headers)?;
    if let Some(credentials) = &route.credentials
        && !matches!(outcome, Outcome::Refuse(_))
    {
        // Boxed: most routes require no credentials.
        Box::pin(authenticate(exchange, route, credentials)).await?;
    }
    let compression = compression::negotiate(exchange, route);
    let store = active.plan.cache();
    let uncached = match store.filter(|_| cache::uses_store(route, &exchange.head.method)) {
        None => None,
        // Boxed: most configurations store no responses.
        Some(store) => {
            match Box::pin(cache::handle(exchange, route, store, &outcome, end_by)).await? {
                CacheResult::Response(response) => {
                    return compress(exchange, compression, route, response);
                }
                CacheResult::Forward(uncached) => Some(uncached),
            }
        }
    };
    let now = admission::admit(exchange, route, &outcome, end_by).await?;
    let mut response = match &route.agents {
        None => {
            let total = end_by.map(|end| end.saturating_sub(now));
            carry_out(exchange, route, outcome, total).await
        }
        // Boxed: most routes have no agents.
        Some(agents) => Box::pin(inspected(exchange, route, agents, outcome, end_by)).await,
    };
    if let (Some(uncached), Ok(response)) = (uncached, &mut response) {
        uncached.finish(response);
    }
    match compression {
        Some(wanted) => compression::apply(exchange, wanted, route, response?),
        None => response,
    }
}

fn compress(
    exchange: &Exchange,
    wanted: Option<CompressionRequest>,
    route: &RoutePlan,
    response: Response<Body>,
) -> Result<Response<Body>, Problem> {
    match wanted {
        Some(wanted) => compression::apply(exchange, wanted, route, response),
        None => Ok(response),
    }
}

/// Checks the credentials of the request, then its limits by a field with a claim of its token.
async fn authenticate(
    exchange: &mut Exchange,
    route: &RoutePlan,
    required: &CredentialsPlan,
) -> Result<(), Problem> {
    credentials::check(exchange, route, required).await?;
    rate_limit::check_stage(exchange, route.index, RateStage::AfterCredentials).await
}

/// The plan's decision on a request with a route.
pub(crate) struct Decided<'p> {
    pub(crate) route: &'p RoutePlan,
    /// The service that answers it.
    pub(crate) outcome: Outcome<'p>,
    /// End of the request's time, since the worker's start; `None` for unlimited.
    pub(crate) end_by: Option<Duration>,
}

/// Decides on the request by the plan `active`.
#[inline]
pub(crate) fn decide<'p>(
    exchange: &Exchange,
    active: &'p ActivePlan,
) -> Result<Decided<'p>, Problem> {
    let now = exchange.began();
    let head = exchange.request_head();
    client_certificate::check(exchange.client(), &exchange.worker().time, now)?;
    misdirected::check(exchange.client(), head.host)?;
    let states = WorkerView {
        worker: exchange.worker(),
        active,
        now,
    };
    let decision = active.plan.decide(&head, &states, now);
    match decision.route {
        Some(route) => Ok(Decided {
            route,
            outcome: decision.outcome,
            end_by: decision.end_by,
        }),
        None => Err(refused(decision.outcome, || near_miss(exchange, &head))),
    }
}

/// Charges a request without a route to the global and per-client rate limits. Returns the exceeded
/// limit's problem, else `problem`.
#[cold]
pub(crate) fn count_unrouted(exchange: &mut Exchange, problem: Problem) -> Problem {
    let index = exchange.active().unrouted();
    let counted = rate_limit::check(exchange, index, RateStage::First);
    counted.err().unwrap_or(problem)
}

/// Carries out the plan's decision unless an agent refuses the request or its response.
async fn inspected(
    exchange: &mut Exchange,
    route: &RoutePlan,
    agents: &RouteAgents,
    outcome: Outcome<'_>,
    end_by: Option<Duration>,
) -> Result<Response<Body>, Problem> {
    let asked = agents::inspect_request(exchange, route, agents, end_by).await?;
    if let Some(response) = asked {
        rate_limit::show_later(exchange);
        return Ok(response);
    }
    rate_limit::check_stage(exchange, route.index, RateStage::AfterAgents).await?;
    let now = exchange.worker().time.elapsed();
    let total = end_by.map(|end| end.saturating_sub(now));
    let response = carry_out(exchange, route, outcome, total).await?;
    agents::inspect_response(exchange, response, end_by).await
}

/// Carries out the plan's decision within the time `total`.
async fn carry_out(
    exchange: &mut Exchange,
    route: &RoutePlan,
    outcome: Outcome<'_>,
    total: Option<Duration>,
) -> Result<Response<Body>, Problem> {
    match outcome {
        Outcome::Refuse(problem) => Err(problem),
        Outcome::Answer(handler) => {
            let answer = builtin::answer(handler, exchange)?;
            let mut response = exchange.answer_counted(answer)?;
            exchange.response_edits(route).apply(response.headers_mut());
            Ok(response)
        }
        Outcome::Files => files::answer(exchange, route, total).await,
        Outcome::Redirect(redirection) => Ok(answers::redirect(exchange, route, redirection)),
        Outcome::Respond(response) => Ok(answers::respond(exchange, route, response)),
        Outcome::Forward(upstream, choice) => {
            if route.shadow.is_some() {
                shadow::begin(exchange, route);
            }
            let destination = Destination {
                route,
                upstream,
                choice,
                total: grpc_timeout::bound(exchange, total),
            };
            forward::send(exchange, destination).await
        }
    }
}

/// The problem of a request without a route, with `near_miss` if no route matches.
fn refused(outcome: Outcome<'_>, near_miss: impl FnOnce() -> Option<String>) -> Problem {
    match outcome {
        Outcome::Refuse(problem) if problem.reason() == Reason::RouteNotFound => {
            let detail = near_miss().map_or(Detail::None, Detail::text);
            Problem::new(Reason::RouteNotFound, detail)
        }
        Outcome::Refuse(problem) => problem,
        Outcome::Answer(_)
        | Outcome::Files
        | Outcome::Redirect(_)
        | Outcome::Respond(_)
        | Outcome::Forward(..) => {
            let detail = Detail::text("a decision without a route");
            Problem::new(Reason::InternalError, detail)
        }
    }
}

/// The nearest route of an unmatched request, for the error log; `None` if the log is disabled.
fn near_miss(exchange: &Exchange, head: &RequestHead<'_>) -> Option<String> {
    let is_written = exchange.worker().logs.borrow().warnings;
    is_written
        .then(|| exchange.active().plan.near_miss(head))
        .flatten()
}
