//! Inspection of request bodies: read up to the agents' limit, and sent to them before any byte is
//! forwarded.

use super::body_inspection::{BodyVerdict, inspection_limit, put_back, send_piece, take_session};
use super::call::AgentCall;
use super::content::Content;
use super::{decision, event};
use crate::exchange::Exchange;
use crate::failure::{exchange_problem, timeout_problem};
use crate::forward;
use crate::headers::forwarding_claims::{has_other_sign, remove_alike};
use crate::record::agent_record::AgentSession;
use crate::response::body::Body;
use crate::upload::body_buffer::{BodyBuffer, memory_problem};
use crate::upload::request_body::{HoldError, InspectedBody};
use agent_protocol::{BodyMode, EventKind, ProxyMessage};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderName, HeaderValue, Response};
use proxy_clock::RequestTimers;
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::RoutePlan;
use proxy_pool::SendError;
use std::future::poll_fn;
use std::rc::Rc;

/// Sends the body to the agents that subscribe to it, in the order of the route. Returns the
/// response of one that answers in place of the upstream.
///
/// # Errors
/// The body exceeds a limit, cannot be read or decompressed, or an agent refuses it.
pub(super) async fn inspect(
    exchange: &mut Exchange,
    route: &RoutePlan,
    timers: &RequestTimers,
) -> Result<Option<Response<Body>>, Problem> {
    let Some(max_bytes) = inspection_limit(exchange, subscribes) else {
        return Ok(None);
    };
    check_content_length(exchange, max_bytes)?;
    let content = read_content(exchange, route, max_bytes, timers).await?;
    let mut index = 0;
    while let Some(mut session) = take_session(exchange, index) {
        let verdict = inspect_by(exchange, &mut session, &content, timers).await;
        if matches!(verdict, Ok(BodyVerdict::FailedOpen)) {
            continue;
        }
        put_back(exchange, index, session);
        index += 1;
        if let BodyVerdict::Replied(response) = verdict? {
            return Ok(Some(*response));
        }
    }
    Ok(None)
}

fn subscribes(session: &AgentSession) -> bool {
    session.session.request_body() != BodyMode::None
}

/// Refuses a body with a `Content-Length` over the limit before the client sends it, if an agent
/// has `on-oversize "block"`.
fn check_content_length(exchange: &Exchange, max_bytes: u64) -> Result<(), Problem> {
    let length = exchange.head.headers.content_length();
    let Some(current) = length.filter(|length| max_bytes < *length) else {
        return Ok(());
    };
    let agents = exchange.completion.record.agents.as_ref();
    let mut sessions = agents.map_or(&[][..], |agents| &agents.sessions).iter();
    let blocks_oversize = |one: &&AgentSession| subscribes(one) && !one.agent.passes_oversize;
    let Some(blocking) = sessions.find(blocks_oversize) else {
        return Ok(());
    };
    let detail = Detail::Limit {
        current,
        limit: max_bytes,
    };
    let problem = Problem::new(Reason::BodySizeLimit, detail);
    Err(problem.with_setting(blocking.agent.max_body_setting))
}

/// Reads the body up to `max_bytes`, and puts it back for the upstream. A body that was
/// decompressed whole is forwarded decompressed: the target receives the bytes that the agents
/// inspected.
async fn read_content(
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
    remove_coding_lookalikes(exchange);
    let Some(body) = exchange.body.take() else {
        return Ok(content);
    };
    let any_rate = exchange.is_grpc;
    let (mut upload, progress) = forward::upload(exchange, route, any_rate, body, timers);
    exchange.record().upload = Some(progress);
    let mut held = InspectedBody::new(BodyBuffer::new(memory));
    let reading = poll_fn(|cx| upload.poll_inspect(cx, &mut held, |piece| content.push(piece)));
    let read = reading.await;
    timers.stop();
    read.map_err(|error| read_problem(exchange, error))?;
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
    exchange.body = Some(held.into_body(upload));
    Ok(content)
}

fn read_problem(exchange: &Exchange, error: HoldError) -> Problem {
    match error {
        HoldError::MemoryFull => memory_problem(),
        // This body has no such limit: only bodies buffered whole have one.
        HoldError::TooLarge(_) => Problem::new(Reason::InternalError, Detail::None),
        HoldError::Late(timer, after) => timeout_problem(timer, after),
        HoldError::Body(fault) => {
            let unread = exchange.client().fault.get();
            exchange_problem(&SendError::RequestBody, "", Some(fault), unread)
        }
    }
}

/// Removes fields that a target may read as `Content-Encoding`, such as `Content_Encoding`: agents
/// inspected the body without that coding.
fn remove_coding_lookalikes(exchange: &mut Exchange) {
    let headers = &mut exchange.head.headers;
    let mut names = headers.as_map().keys().map(HeaderName::as_str);
    if names.any(|name| name.len() == CONTENT_ENCODING.as_str().len() && has_other_sign(name)) {
        headers.edit(|map| remove_alike(map, CONTENT_ENCODING.as_str()));
    }
}

/// Removes the fields that describe the compressed bytes of a body that is forwarded decompressed.
/// `Content-Length` is set again afterwards, unless the body has trailers.
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

/// Sends the content to one agent, unless it subscribes to no request body.
async fn inspect_by(
    exchange: &mut Exchange,
    agent_session: &mut AgentSession,
    content: &Content,
    timers: &RequestTimers,
) -> Result<BodyVerdict, Problem> {
    if !subscribes(agent_session) {
        return Ok(BodyVerdict::Allowed);
    }
    let AgentSession { agent, session } = agent_session;
    content.check_size(agent)?;
    let active = Rc::clone(exchange.active());
    let is_chunk = session.request_body() == BodyMode::Chunks;
    for piece in content.pieces(is_chunk) {
        let kind = EventKind::RequestBody;
        let call = AgentCall::new(&active, agent, kind, exchange.completion.record.client_ip);
        let chunk = event::body_chunk(session.next_event(), agent, piece);
        let message = ProxyMessage::RequestBody(chunk);
        let sending = send_piece(session, &message, kind, is_chunk, call.context());
        let outcome = call.run(exchange.worker(), timers, Some(sending)).await;
        let Some(decision) = call.record(exchange, outcome)? else {
            return Ok(BodyVerdict::FailedOpen);
        };
        if let Some(response) = decision::to_request(exchange, agent, decision)? {
            return Ok(BodyVerdict::Replied(Box::new(response)));
        }
        // The decision may end the subscription.
        if session.request_body() == BodyMode::None {
            break;
        }
    }
    session.end_events(EventKind::RequestBody);
    Ok(BodyVerdict::Allowed)
}
