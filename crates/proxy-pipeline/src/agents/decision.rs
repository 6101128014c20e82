//! Effects of agents' decisions on requests and responses.

use super::edits;
use crate::exchange::Exchange;
use crate::record::agent_record::AgentReply;
use crate::response::body::Body;
use crate::response::local_reply::{Answer, describes_a_body};
use agent_protocol::{Allow, Block, BodyData, Challenge, Decision, HeaderEdit, Redirect, Text};
use bytes::Bytes;
use http::header::{LOCATION, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::AgentPlan;

/// Applies a decision about the request. Returns the response of a redirect.
pub(super) fn to_request(
    exchange: &mut Exchange,
    agent: &AgentPlan,
    decision: Decision,
) -> Result<Option<Response<Body>>, Problem> {
    match decision {
        Decision::Allow(allow) => {
            edit_request(exchange, agent, allow);
            Ok(None)
        }
        refused @ (Decision::Block(_) | Decision::Redirect(_) | Decision::Challenge(_)) => {
            refuse(exchange, agent, refused).map(Some)
        }
    }
}

/// Applies a decision about the response. Returns the response that replaces it.
pub(super) fn to_response(
    exchange: &mut Exchange,
    agent: &AgentPlan,
    decision: Decision,
    response: &mut Response<Body>,
) -> Result<Option<Response<Body>>, Problem> {
    match decision {
        Decision::Allow(allow) => {
            let edited = &allow.response_headers;
            edits::apply(edited, response.headers_mut());
            let record = exchange.record().agents.get_or_insert_default();
            record.response_fields.extend(edits::replaced(edited));
            Ok(None)
        }
        refused @ (Decision::Block(_) | Decision::Redirect(_) | Decision::Challenge(_)) => {
            // A tunnel that was about to begin ends here.
            exchange.record().upgrade = None;
            refuse(exchange, agent, refused).map(Some)
        }
    }
}

fn edit_request(exchange: &mut Exchange, agent: &AgentPlan, allow: Allow) {
    let Allow {
        request_headers,
        response_headers,
        metadata,
        skip: _,
    } = allow;
    let record = exchange.record().agents.get_or_insert_default();
    if !metadata.is_empty() {
        record
            .metadata
            .insert(agent.name.as_ref().to_owned(), metadata);
    }
    record.response_edits.extend(response_headers);
    if !request_headers.is_empty() {
        let headers = &mut exchange.head.headers;
        headers.edit(|map| edits::apply_to_request(&request_headers, map));
        let names = request_headers.iter().map(HeaderEdit::name);
        let names = names.filter_map(|name| HeaderName::try_from(name).ok());
        exchange.agent_fields.extend(names);
    }
}

/// The problem of a refused request or response, or the response of a redirect.
fn refuse(
    exchange: &mut Exchange,
    agent: &AgentPlan,
    decision: Decision,
) -> Result<Response<Body>, Problem> {
    match decision {
        Decision::Allow(_) => Err(Problem::new(Reason::InternalError, Detail::None)),
        Decision::Block(block) => Err(blocked(exchange, agent, block)),
        Decision::Challenge(challenge) => Err(challenged(exchange, agent, challenge)),
        Decision::Redirect(redirect) => redirected(exchange, agent, redirect),
    }
}

fn blocked(exchange: &mut Exchange, agent: &AgentPlan, mut block: Block) -> Problem {
    let problem = refusal(Reason::AgentBlocked, agent, block.reason.take());
    with_answer(exchange, problem, block)
}

/// The problem of a `forward-auth` server that answers 5xx; the client gets that response.
pub(super) fn server_error(exchange: &mut Exchange, agent: &AgentPlan, answer: Block) -> Problem {
    let status = answer.status.unwrap_or_default();
    let detail = Detail::named(&*agent.name, format!("the server answers {status}"));
    let problem = Problem::new(Reason::AgentBadReply, detail);
    with_answer(exchange, problem, answer)
}

/// Adds the agent's status, header fields and body to the problem's response.
fn with_answer(exchange: &mut Exchange, problem: Problem, answer: Block) -> Problem {
    let Block {
        status,
        headers,
        body,
        reason: _,
    } = answer;
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    set_reply(exchange, edits::fields(&headers), body);
    match status {
        Some(status) => problem.with_status(status),
        None => problem,
    }
}

fn challenged(exchange: &mut Exchange, agent: &AgentPlan, challenge: Challenge) -> Problem {
    let Challenge {
        challenges,
        headers,
        body,
        reason,
    } = challenge;
    let mut fields = edits::fields(&headers);
    let values = challenges.iter().filter_map(value_of);
    fields.extend(values.map(|value| (WWW_AUTHENTICATE, value)));
    set_reply(exchange, fields, body);
    refusal(Reason::AgentChallenge, agent, reason)
}

fn redirected(
    exchange: &mut Exchange,
    agent: &AgentPlan,
    redirect: Redirect,
) -> Result<Response<Body>, Problem> {
    let Redirect {
        status,
        location,
        headers,
        body,
    } = redirect;
    if exchange.is_grpc {
        // A gRPC caller follows no redirect.
        return Err(refusal(Reason::AgentBlocked, agent, None));
    }
    let answer = Answer {
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::FOUND),
        content_type: None,
        body: body.map_or_else(Bytes::new, bytes_of),
    };
    let has_body = !answer.body.is_empty();
    let mut response = exchange.answer(answer);
    let own = response.headers_mut();
    let fields = edits::fields(&headers).into_iter();
    for (name, value) in fields.filter(|(name, _)| has_body || !describes_a_body(name)) {
        own.append(name, value);
    }
    if let Some(location) = value_of(&location) {
        own.insert(LOCATION, location);
    }
    // The route's edits come last, as on every response of the route.
    if let Some(route) = exchange.route() {
        exchange.response_edits(route).apply(own);
    }
    Ok(response)
}

fn set_reply(
    exchange: &mut Exchange,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<BodyData<'static>>,
) {
    let body = body.map(bytes_of);
    let record = exchange.record().agents.get_or_insert_default();
    record.reply = Some(AgentReply {
        headers,
        body,
        memory: None,
    });
}

/// A refusal by an agent; `text` goes to the log only.
fn refusal(reason: Reason, agent: &AgentPlan, text: Option<String>) -> Problem {
    let text = text.map(|text| format!("{}: {text}", agent.name));
    let detail = Detail::text(text.unwrap_or_else(|| agent.name.as_ref().to_owned()));
    Problem::new(reason, detail)
}

fn bytes_of(BodyData(bytes): BodyData<'static>) -> Bytes {
    Bytes::from(bytes.into_owned())
}

fn value_of(text: &Text<'_>) -> Option<HeaderValue> {
    HeaderValue::from_bytes(text.as_bytes()).ok()
}
