//! Answers to the HTTP-01 challenges of certificate authorities. [RFC 8555 §8.3]

use crate::exchange::Exchange;
use crate::response::body::Body;
use crate::response::local_reply::Answer;
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The path of a challenge, before its token.
const PREFIX: &str = "/.well-known/acme-challenge/";

/// The key authorizations of challenges under way, by token. Written by the control thread, read by every
/// worker; clones share them.
#[derive(Clone, Debug, Default)]
pub struct ChallengeTokens(Arc<Tokens>);

#[derive(Debug, Default)]
struct Tokens {
    /// Whether there is any: read for each request.
    any: AtomicBool,
    by_token: ArcSwap<HashMap<Box<str>, Bytes>>,
}

impl ChallengeTokens {
    /// Answers requests for `token` with `key_authorization`.
    pub fn publish(&self, token: &str, key_authorization: &str) {
        let answer = Bytes::copy_from_slice(key_authorization.as_bytes());
        self.change(|by_token| {
            by_token.insert(token.into(), answer);
        });
    }

    /// Ends that.
    pub fn withdraw(&self, token: &str) {
        self.change(|by_token| {
            by_token.remove(token);
        });
    }

    /// Changes the tokens; called by the control thread only.
    fn change(&self, change: impl FnOnce(&mut HashMap<Box<str>, Bytes>)) {
        let mut by_token = HashMap::clone(&self.0.by_token.load());
        change(&mut by_token);
        let any = !by_token.is_empty();
        self.0.by_token.store(Arc::new(by_token));
        self.0.any.store(any, Ordering::Release);
    }

    fn any(&self) -> bool {
        self.0.any.load(Ordering::Acquire)
    }

    fn answer(&self, token: &str) -> Option<Bytes> {
        self.0.by_token.load().get(token).cloned()
    }
}

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
