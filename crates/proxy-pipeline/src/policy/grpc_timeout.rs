//! The timeout of a gRPC request, bounded by the route's, and forwarded less the elapsed time.

use crate::exchange::Exchange;
use crate::headers::names;
use http::{HeaderMap, HeaderValue};
use proxy_framing::{read_grpc_timeout, write_grpc_timeout};
use std::time::Duration;

/// Maximum time of the whole exchange, from now; `own` is the route's timeout.
#[inline]
pub(crate) fn bound(exchange: &Exchange, own: Option<Duration>) -> Option<Duration> {
    if !exchange.is_grpc {
        return own;
    }
    let requested = exchange.head.headers.as_map().get(names::GRPC_TIMEOUT);
    let requested = requested.and_then(|value| read_grpc_timeout(value.as_bytes()));
    match (requested, own) {
        (Some(requested), Some(own)) => Some(requested.min(own)),
        (requested, own) => requested.or(own),
    }
}

/// Sets the remaining time for the target, if the client set a timeout.
pub(crate) fn pass_on(headers: &mut HeaderMap, left: Duration) {
    let value = headers.get_mut(names::GRPC_TIMEOUT);
    if let Some((value, time)) = value.zip(HeaderValue::try_from(write_grpc_timeout(left)).ok()) {
        *value = time;
    }
}
