//! The agents of a route: called with its requests before they are forwarded, and with the
//! responses.

mod body_inspection;
mod call;
mod content;
mod decision;
mod edits;
mod event;
mod failure;
mod request_body;
mod response_body;

use crate::exchange::Exchange;
use crate::headers::forwarding_claims::remove_alike;
use crate::record::agent_record::AgentSession;
use crate::response::body::Body;
use crate::worker::active_plan::ActivePlan;
use agent_protocol::{Allow, Decision, EventKind, ProxyMessage};
use body_inspection::{put_back, take_session};
use call::{AgentCall, CallOutcome};
use http::Response;
use proxy_agent::AgentUpstream;
use proxy_clock::RequestTimers;
use proxy_errors::Problem;
use proxy_plan::{AgentPlan, RouteAgents, RoutePlan};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Calls the agents with the request's head, one after the other. Returns the redirect of an agent
/// that redirects the client. `end_by` is the end of the request's time, since the worker's start.
pub(crate) async fn inspect_request(
    exchange: &mut Exchange,
    route: &RoutePlan,
    agents: &RouteAgents,
    end_by: Option<Duration>,
) -> Result<Option<Response<Body>>, Problem> {
    exchange.strip_claims();
    let timers = timers(exchange, end_by);
    for agent in &agents.agents {
        let Some(decision) = decide_on_request(exchange, agent, &timers).await? else {
            remove_claims(exchange, agent);
            continue;
        };
        if let Some(response) = decision::to_request(exchange, agent, decision)? {
            return Ok(Some(response));
        }
    }
    let replied = request_body::inspect(exchange, route, &timers).await?;
    timers.stop();
    Ok(replied)
}

/// Calls the agents with the response, in the order of the route, and applies their edits.
pub(crate) async fn inspect_response(
    exchange: &mut Exchange,
    mut response: Response<Body>,
    end_by: Option<Duration>,
) -> Result<Response<Body>, Problem> {
    let Some(record) = &mut exchange.record().agents else {
        return Ok(response);
    };
    let early = std::mem::take(&mut record.response_edits);
    record.response_fields.extend(edits::replaced(&early));
    edits::apply(&early, response.headers_mut());
    let timers = timers(exchange, end_by);
    let mut index = 0;
    while let Some(mut session) = take_session(exchange, index) {
        let agent = Arc::clone(&session.agent);
        let decision = if session.session.wants_response_headers() {
            decide_on_response(exchange, &mut session, &response, &timers).await
        } else {
            Ok(Some(Decision::Allow(Allow::default())))
        };
        // The session of an agent that failed open is closed.
        if matches!(decision, Ok(None)) {
            continue;
        }
        put_back(exchange, index, session);
        index += 1;
        if let Some(decision) = decision?
            && let Some(reply) = decision::to_response(exchange, &agent, decision, &mut response)?
        {
            return Ok(reply);
        }
    }
    let replied = response_body::inspect(exchange, &mut response, &timers).await?;
    timers.stop();
    Ok(replied.unwrap_or(response))
}

/// Removes the client's own fields with names that the failed `agent` may set, because they are
/// unverified.
fn remove_claims(exchange: &mut Exchange, agent: &AgentPlan) {
    let names = &agent.endpoint.copy_headers;
    if names.is_empty() {
        return;
    }
    exchange.agent_fields.extend_from_slice(names);
    exchange.head.headers.edit(|headers| {
        for name in names {
            headers.remove(name);
            remove_alike(headers, name.as_str());
        }
    });
}

fn timers(exchange: &Exchange, end_by: Option<Duration>) -> RequestTimers {
    let total = end_by.map(|end| end.saturating_sub(exchange.worker().time.elapsed()));
    exchange.timers(total)
}

/// The agent's decision on the request's head; `None` if the agent failed open.
async fn decide_on_request(
    exchange: &mut Exchange,
    agent: &Arc<AgentPlan>,
    timers: &RequestTimers,
) -> Result<Option<Decision>, Problem> {
    let active = Rc::clone(exchange.active());
    let client_ip = exchange.completion.record.client_ip;
    let call = AgentCall::new(&active, agent, EventKind::RequestHeaders, client_ip);
    let outcome = {
        let worker = exchange.worker();
        let head = event::request_head(exchange, agent);
        let upstream = upstream_of(agent, &active);
        let calling = call.client().map(async |client| {
            let now = worker.time.elapsed();
            let answer = client.begin(now, head, call.context(), upstream).await?;
            edits::check(&answer.decision).map(|()| answer)
        });
        call.run(worker, timers, calling).await
    };
    let CallOutcome { result, took } = outcome;
    let mut session = None;
    let result = result.map(|answer| {
        session = answer.session;
        answer.decision
    });
    let decision = call.record(exchange, CallOutcome { result, took })?;
    if let Some(mut session) = session {
        let body = exchange.body.as_ref();
        if body.is_none_or(http_body::Body::is_end_stream) {
            session.end_events(EventKind::RequestBody);
        }
        let record = exchange.record().agents.get_or_insert_default();
        record.sessions.push(AgentSession {
            agent: Arc::clone(agent),
            session,
        });
    }
    Ok(decision)
}

fn upstream_of<'p>(agent: &AgentPlan, active: &'p ActivePlan) -> Option<AgentUpstream<'p>> {
    let index = agent.upstream?;
    Some(AgentUpstream {
        upstream: active.plan.upstreams().get(index)?,
        connectors: &active.upstreams.get(index)?.connectors.targets,
    })
}

/// The agent's decision on the response's head; `None` if the agent failed open.
async fn decide_on_response(
    exchange: &mut Exchange,
    AgentSession { agent, session }: &mut AgentSession,
    response: &Response<Body>,
    timers: &RequestTimers,
) -> Result<Option<Decision>, Problem> {
    let active = Rc::clone(exchange.active());
    let client_ip = exchange.completion.record.client_ip;
    let call = AgentCall::new(&active, agent, EventKind::ResponseHeaders, client_ip);
    let upstream = exchange.completion.upstream_name();
    let head = event::response_head(session.next_event(), agent, upstream, response);
    let message = ProxyMessage::ResponseHeaders(head);
    let calling = async {
        let kind = EventKind::ResponseHeaders;
        let calling = session.call(&message, kind, false, call.context());
        let decision = calling.await?;
        edits::check(&decision).map(|()| decision)
    };
    let outcome = call.run(exchange.worker(), timers, Some(calling)).await;
    session.end_events(EventKind::ResponseHeaders);
    call.record(exchange, outcome)
}
