//! The time that a gRPC caller gives, bounded by the route's and passed on less what was spent.

use crate::exchange::Exchange;
use crate::known_headers::KnownHeaders;
use crate::names;
use http::{HeaderMap, HeaderValue};
use proxy_framing::{read_grpc_timeout, write_grpc_timeout};
use std::time::Duration;

/// How long the exchange may take in all, from now; `own` is what the route says.
#[inline]
pub(crate) fn bound(exchange: &Exchange, own: Option<Duration>) -> Option<Duration> {
    if !exchange.known.has(KnownHeaders::GRPC) {
        return own;
    }
    let told = exchange.head.headers.get(names::GRPC_TIMEOUT);
    let told = told.and_then(|value| read_grpc_timeout(value.as_bytes()));
    match (told, own) {
        (Some(told), Some(own)) => Some(told.min(own)),
        (told, own) => told.or(own),
    }
}

/// Tells the target how much time is left, if the caller told how much there is.
pub(crate) fn pass_on(headers: &mut HeaderMap, left: Duration) {
    let value = headers.get_mut(names::GRPC_TIMEOUT);
    if let Some((value, time)) = value.zip(HeaderValue::try_from(write_grpc_timeout(left)).ok()) {
        *value = time;
    }
}
