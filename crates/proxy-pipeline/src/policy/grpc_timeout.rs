//! The timeout of a gRPC request, bounded by the route's, and forwarded less the elapsed time.

use crate::exchange::Exchange;
use crate::headers::names;
use http::{HeaderMap, HeaderValue};
use proxy_framing::{read_grpc_timeout, write_grpc_timeout};
use std::time::Duration;

/// Maximum time of the whole exchange, from now; `own` is the route's.
#[inline]
pub(crate) fn bound(exchange: &Exchange, own: Option<Duration>) -> Option<Duration> {
    if !exchange.is_grpc {
        return own;
    }
    let told = exchange.head.headers.as_map().get(names::GRPC_TIMEOUT);
    let told = told.and_then(|value| read_grpc_timeout(value.as_bytes()));
    match (told, own) {
        (Some(told), Some(own)) => Some(told.min(own)),
        (told, own) => told.or(own),
    }
}

/// Sets the remaining time for the target, if the client set a timeout.
pub(crate) fn pass_on(headers: &mut HeaderMap, left: Duration) {
    let value = headers.get_mut(names::GRPC_TIMEOUT);
    if let Some((value, time)) = value.zip(HeaderValue::try_from(write_grpc_timeout(left)).ok()) {
        *value = time;
    }
}
