//! Answers to the HTTP-01 challenges of certificate authorities. [RFC 8555 §8.3]

use crate::exchange::Exchange;
use crate::response::body::Body;
use crate::response::local_reply::Answer;
use crate::worker::challenge_tokens::ChallengeTokens;
use http::{HeaderValue, Method, Response, StatusCode};

/// The path of a challenge, before its token.
const PREFIX: &str = "/.well-known/acme-challenge/";

/// The response to an authority that validates a host; `None` for any other request.
#[inline]
pub(crate) fn answer(exchange: &Exchange) -> Option<Response<Body>> {
    let tokens = &exchange.worker().shared.challenges;
    if !tokens.any() {
        return None;
    }
    validation(exchange, tokens)
}

#[cold]
fn validation(exchange: &Exchange, tokens: &ChallengeTokens) -> Option<Response<Body>> {
    let head = &exchange.head;
    if head.method != Method::GET && head.method != Method::HEAD {
        return None;
    }
    let token = head.uri.path().strip_prefix(PREFIX)?;
    let body = tokens.answer(token)?;
    Some(exchange.answer(Answer {
        status: StatusCode::OK,
        content_type: Some(HeaderValue::from_static("application/octet-stream")),
        body,
    }))
}
