//! Inspection of request bodies: read up to the agents' limit, and sent to them before any byte is
//! forwarded.

use super::call::{AgentCall, CallOutcome};
use super::content::Content;
use super::{decision, edits, event};
use crate::exchange::Exchange;
use crate::failure::{exchange_problem, timeout_problem};
use crate::forward;
use crate::headers::forwarding_claims::{has_other_sign, remove_alike};
use crate::record::agent_record::AgentSession;
use crate::response::body::Body;
use crate::upload::body_buffer::{BodyBuffer, memory_problem};
use crate::upload::request_body::{HoldError, InspectedBody};
use agent_protocol::{BodyMode, Decision, EventKind, ProxyMessage};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderName, HeaderValue, Response};
use proxy_agent::{CallContext, CallError, Session};
use proxy_clock::RequestTimers;
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::RoutePlan;
use proxy_pool::SendError;
use std::future::poll_fn;
use std::rc::Rc;

/// Sends the body to the agents that subscribe to it, in the order of the route.
pub(super) async fn inspect(
    exchange: &mut Exchange,
    route: &RoutePlan,
    timers: &RequestTimers,
) -> Result<Option<Response<Body>>, Problem> {
    let Some(max_bytes) = wanted(exchange) else {
        return Ok(None);
    };
    if let Some(problem) = announced_too_large(exchange, max_bytes) {
        return Err(problem);
    }
    let content = read(exchange, route, max_bytes, timers).await?;
    let mut index = 0;
    while let Some(mut session) = take(exchange, index) {
        let shown = if session.session.request_body() == BodyMode::None {
            Ok(Some(Verdict::Allowed))
        } else {
            show(exchange, &mut session, &content, timers).await
        };
        // Closes the session of a failed agent; reports the end of the request to the remaining
        // agents.
        if !matches!(shown, Ok(None)) {
            exchange
                .record()
                .agents
                .get_or_insert_default()
                .put_back(index, session);
            index += 1;
        }
        if let Some(Verdict::Reply(response)) = shown? {
            return Ok(Some(*response));
        }
    }
    Ok(None)
}

fn take(exchange: &mut Exchange, index: usize) -> Option<AgentSession> {
    exchange.record().agents.as_mut()?.take(index)
}

/// An agent's decision about a body.
enum Verdict {
    Allowed,
    // Boxed, because it is rare.
    Reply(Box<Response<Body>>),
}

/// The largest limit of the agents that subscribe to bodies, in bytes; `None` if none does.
fn wanted(exchange: &Exchange) -> Option<u64> {
    let agents = exchange.completion.record.agents.as_ref()?;
    let mut wanting = agents
        .sessions
        .iter()
        .filter(|one| one.session.request_body() != BodyMode::None);
    wanting.next().map(|one| one.agent.max_body_bytes)
}

/// The problem of a body with a `Content-Length` above the limit of an agent with `on-oversize "block"`.
/// Refused before the client sends it.
fn announced_too_large(exchange: &Exchange, max_bytes: u64) -> Option<Problem> {
    let announced = exchange.head.headers.content_length();
    let current = announced.filter(|length| max_bytes < *length)?;
    let agents = exchange.completion.record.agents.as_ref()?;
    let refusing = agents
        .sessions
        .iter()
        .find(|one| one.session.request_body() != BodyMode::None && !one.agent.passes_oversize)?;
    let detail = Detail::Limit {
        current,
        limit: max_bytes,
    };
    let problem = Problem::new(Reason::BodySizeLimit, detail);
    Some(problem.with_setting(refusing.agent.max_body_setting))
}

/// Reads the body up to the agents' limit, and puts it back. A completely decoded body is forwarded
/// decoded, so that the target receives the bytes inspected by agents.
async fn read(
    exchange: &mut Exchange,
    route: &RoutePlan,
    max_bytes: u64,
    timers: &RequestTimers,
) -> Result<Content, Problem> {
    let limits = &exchange.active().plan.model().limits;
    let memory = exchange.worker().reserve_body();
    let headers = exchange.head.headers.as_map();
    let mut content = Content::new(headers, limits, max_bytes, Rc::clone(&memory))?;
    content.check_coding()?;
    remove_shadows_of_coding(exchange);
    let Some(body) = exchange.body.take() else {
        return Ok(content);
    };
    let any_rate = exchange.is_grpc;
    let (mut reading, progress) = forward::upload(exchange, route, any_rate, body, timers);
    exchange.record().upload = Some(progress);
    let mut held = InspectedBody::new(BodyBuffer::new(memory));
    let read = poll_fn(|cx| reading.poll_inspect(cx, &mut held, |piece| content.push(piece)));
    let read = read.await;
    timers.stop();
    read.map_err(|fault| match fault {
        HoldError::MemoryFull => memory_problem(),
        HoldError::TooLarge(_) => Problem::new(Reason::InternalError, Detail::None),
        HoldError::Late(timer, after) => timeout_problem(timer, after),
        HoldError::Body(fault) => {
            let unread = exchange.client().fault.get();
            exchange_problem(&SendError::RequestBody, "", Some(fault), unread)
        }
    })?;
    if content.is_out_of_memory() {
        return Err(memory_problem());
    }
    if let Some(problem) = content.decoding_problem() {
        return Err(problem);
    }
    if held.is_whole() {
        content.finish()?;
        if let Some(decoded) = content.decoded() {
            held.replace(decoded);
            remove_coding(exchange);
        }
        if let Some(length) = held.whole_length() {
            let headers = &mut exchange.head.headers;
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
    }
    exchange.body = Some(held.into_body(reading));
    Ok(content)
}

/// Removes fields that a target may read as `Content-Encoding`, because the body was not decoded by them.
fn remove_shadows_of_coding(exchange: &mut Exchange) {
    let headers = &mut exchange.head.headers;
    let mut names = headers.as_map().keys().map(HeaderName::as_str);
    if names.any(|name| name.len() == CONTENT_ENCODING.as_str().len() && has_other_sign(name)) {
        headers.edit(|map| remove_alike(map, CONTENT_ENCODING.as_str()));
    }
}

/// Removes the fields that describe the coded bytes of a body that is forwarded decoded, including
/// `Content-Length`, which a body with trailers has only over HTTP/2.
fn remove_coding(exchange: &mut Exchange) {
    for name in [
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        HeaderName::from_static("content-digest"),
        HeaderName::from_static("content-md5"),
        HeaderName::from_static("digest"),
        HeaderName::from_static("repr-digest"),
    ] {
        exchange.head.headers.remove(&name);
    }
}

/// Sends a piece of a body. The decision edits only fields that agents may change.
pub(super) async fn ask(
    session: &mut Session,
    message: &ProxyMessage<'_>,
    kind: EventKind,
    is_chunk: bool,
    context: &CallContext,
) -> Result<Decision, CallError> {
    let decision = session.call(message, kind, is_chunk, context).await?;
    edits::check(&decision).map(|()| decision)
}

/// Sends the content to one agent; `None` if it failed and the request continues without it.
async fn show(
    exchange: &mut Exchange,
    AgentSession { agent, session }: &mut AgentSession,
    content: &Content,
    timers: &RequestTimers,
) -> Result<Option<Verdict>, Problem> {
    content.check(agent)?;
    let active = Rc::clone(exchange.active());
    let is_chunk = session.request_body() == BodyMode::Chunks;
    for shown in content.pieces(is_chunk) {
        let client_ip = exchange.completion.record.client_ip;
        let call = AgentCall::new(&active, agent, EventKind::RequestBody, client_ip);
        let chunk = event::body_chunk(session.next_event(), agent, shown);
        let message = ProxyMessage::RequestBody(chunk);
        let kind = EventKind::RequestBody;
        let asked = ask(session, &message, kind, is_chunk, call.context());
        let CallOutcome { result, took } = call.run(exchange.worker(), timers, Some(asked)).await;
        let Some(decision) = call.record(exchange, result, took)? else {
            return Ok(None);
        };
        if let Some(response) = decision::to_request(exchange, agent, decision)? {
            return Ok(Some(Verdict::Reply(Box::new(response))));
        }
        if session.request_body() == BodyMode::None {
            break;
        }
    }
    session.end_events(EventKind::RequestBody);
    Ok(Some(Verdict::Allowed))
}
