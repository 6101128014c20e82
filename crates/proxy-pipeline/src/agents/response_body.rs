//! Inspection of response bodies: read up to the agents' limit, and sent to them before the client
//! gets a byte.

use super::body_inspection::{BodyVerdict, inspection_limit, put_back, send_piece, take_session};
use super::call::AgentCall;
use super::content::Content;
use super::{decision, event};
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

/// Sends the body to the agents that subscribe to it, in the order of the route. Returns the
/// response of one that replaces this one.
///
/// # Errors
/// The body exceeds a limit, cannot be read or decompressed, or an agent refuses it.
pub(super) async fn inspect(
    exchange: &mut Exchange,
    response: &mut Response<Body>,
    timers: &RequestTimers,
) -> Result<Option<Response<Body>>, Problem> {
    let limit = inspection_limit(exchange, subscribes).filter(|_| !response.body().is_end_stream());
    let Some(max_bytes) = limit else {
        return Ok(None);
    };
    let content = read_content(exchange, response, max_bytes).await?;
    let mut index = 0;
    while let Some(mut session) = take_session(exchange, index) {
        let verdict = inspect_by(exchange, &mut session, &content, response, timers).await;
        if matches!(verdict, Ok(BodyVerdict::FailedOpen)) {
            continue;
        }
        put_back(exchange, index, session);
        index += 1;
        if let BodyVerdict::Replied(reply) = verdict? {
            return Ok(Some(*reply));
        }
    }
    Ok(None)
}

fn subscribes(session: &AgentSession) -> bool {
    session.session.response_body() != BodyMode::None
}

/// Reads the body up to `max_bytes`. A body that may be endless is not read.
async fn read_content(
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

/// Attributes the problem to the upstream.
fn upstream_problem(problem: Problem) -> Problem {
    problem.with_status(StatusCode::BAD_GATEWAY)
}

/// Sends the content to one agent, unless it subscribes to no response body.
async fn inspect_by(
    exchange: &mut Exchange,
    agent_session: &mut AgentSession,
    content: &Content,
    response: &mut Response<Body>,
    timers: &RequestTimers,
) -> Result<BodyVerdict, Problem> {
    if !subscribes(agent_session) {
        return Ok(BodyVerdict::Allowed);
    }
    let AgentSession { agent, session } = agent_session;
    content.check_size(agent).map_err(upstream_problem)?;
    let active = Rc::clone(exchange.active());
    let is_chunk = session.response_body() == BodyMode::Chunks;
    for piece in content.pieces(is_chunk) {
        let kind = EventKind::ResponseBody;
        let call = AgentCall::new(&active, agent, kind, exchange.completion.record.client_ip);
        let chunk = event::body_chunk(session.next_event(), agent, piece);
        let message = ProxyMessage::ResponseBody(chunk);
        let sending = send_piece(session, &message, kind, is_chunk, call.context());
        let outcome = call.run(exchange.worker(), timers, Some(sending)).await;
        let Some(decision) = call.record(exchange, outcome)? else {
            return Ok(BodyVerdict::FailedOpen);
        };
        if let Some(reply) = decision::to_response(exchange, agent, decision, response)? {
            return Ok(BodyVerdict::Replied(Box::new(reply)));
        }
        // The decision may end the subscription.
        if session.response_body() == BodyMode::None {
            break;
        }
    }
    session.end_events(EventKind::ResponseBody);
    Ok(BodyVerdict::Allowed)
}
