//! Inspection of response bodies: read up to the agents' limit, and sent to them before the client gets
//! a byte.

use super::call::{AgentCall, CallOutcome};
use super::content::Content;
use super::{decision, event, request_body};
use crate::exchange::Exchange;
use crate::record::agent_record::AgentSession;
use crate::response::body::Body;
use crate::response::held_response::is_stream;
use crate::upload::body_buffer::{BodyBuffer, memory_problem};
use agent_protocol::{BodyMode, EventKind, ProxyMessage};
use http::{Response, StatusCode};
use http_body::Body as _;
use proxy_clock::RequestTimers;
use proxy_errors::Problem;
use std::future::poll_fn;
use std::rc::Rc;

/// Sends the body to the agents that subscribe to it, in the order of the route. Returns the response
/// that replaces this one, if an agent refuses it.
pub(super) async fn inspect(
    exchange: &mut Exchange,
    response: &mut Response<Body>,
    timers: &RequestTimers,
) -> Result<Option<Response<Body>>, Problem> {
    let Some(max_bytes) = wanted(exchange).filter(|_| !response.body().is_end_stream()) else {
        return Ok(None);
    };
    let content = read(exchange, response, max_bytes).await?;
    let mut index = 0;
    while let Some(mut session) = take_session(exchange, index) {
        let shown = if session.session.response_body() == BodyMode::None {
            Ok(Some(None))
        } else {
            show(exchange, &mut session, &content, &mut *response, timers).await
        };
        // Closes the session of a failed agent; reports the end of the request to the remaining
        // agents.
        if !matches!(shown, Ok(None)) {
            let record = exchange.record().agents.get_or_insert_default();
            record.put_back(index, session);
            index += 1;
        }
        if let Some(Some(reply)) = shown? {
            return Ok(Some(*reply));
        }
    }
    Ok(None)
}

/// The session at `index`, to be put back.
pub(super) fn take_session(exchange: &mut Exchange, index: usize) -> Option<AgentSession> {
    exchange.record().agents.as_mut()?.take(index)
}

/// The largest limit of the agents that subscribe to bodies, in bytes; `None` if none does.
fn wanted(exchange: &Exchange) -> Option<u64> {
    let agents = exchange.completion.record.agents.as_ref()?;
    let mut wanting = agents
        .sessions
        .iter()
        .filter(|one| one.session.response_body() != BodyMode::None);
    wanting.next().map(|one| one.agent.max_body_bytes)
}

/// Reads the body up to the agents' limit. A body that may be endless is not read.
async fn read(
    exchange: &Exchange,
    response: &mut Response<Body>,
    max_bytes: u64,
) -> Result<Content, Problem> {
    let limits = &exchange.active().plan.model().limits;
    let memory = exchange.worker().reserve_body();
    let content = Content::new(response.headers(), limits, max_bytes, Rc::clone(&memory));
    let mut content = content.map_err(upstream_problem)?;
    if is_stream(response) {
        content.skip();
        return Ok(content);
    }
    let body = response.body_mut();
    body.begin_inspection(BodyBuffer::new(memory));
    let read = poll_fn(|cx| body.poll_inspect(cx, |piece| content.push(piece))).await;
    let is_whole = read.map_err(|fault| fault.into_problem(&exchange.completion))?;
    if content.is_out_of_memory() {
        return Err(memory_problem());
    }
    if let Some(problem) = content.decoding_problem() {
        return Err(upstream_problem(problem));
    }
    if is_whole {
        content.finish().map_err(upstream_problem)?;
    }
    Ok(content)
}

/// The same problem, attributed to the upstream.
fn upstream_problem(problem: Problem) -> Problem {
    problem.with_status(StatusCode::BAD_GATEWAY)
}

/// Sends the content to one agent; `None` if it failed and the response continues without it.
async fn show(
    exchange: &mut Exchange,
    AgentSession { agent, session }: &mut AgentSession,
    content: &Content,
    response: &mut Response<Body>,
    timers: &RequestTimers,
) -> Result<Option<Option<Box<Response<Body>>>>, Problem> {
    content.check(agent).map_err(upstream_problem)?;
    let active = Rc::clone(exchange.active());
    let is_chunk = session.response_body() == BodyMode::Chunks;
    for shown in content.pieces(is_chunk) {
        let client_ip = exchange.completion.record.client_ip;
        let call = AgentCall::new(&active, agent, EventKind::ResponseBody, client_ip);
        let chunk = event::body_chunk(session.next_event(), agent, shown);
        let message = ProxyMessage::ResponseBody(chunk);
        let kind = EventKind::ResponseBody;
        let asked = request_body::ask(session, &message, kind, is_chunk, call.context());
        let CallOutcome { result, took } = call.run(exchange.worker(), timers, Some(asked)).await;
        let Some(decision) = call.record(exchange, result, took)? else {
            return Ok(None);
        };
        if let Some(reply) = decision::to_response(exchange, agent, decision, response)? {
            return Ok(Some(Some(Box::new(reply))));
        }
        if session.response_body() == BodyMode::None {
            break;
        }
    }
    session.end_events(EventKind::ResponseBody);
    Ok(Some(None))
}
