//! Header names without a constant in the `http` crate.

use http::HeaderName;

pub(crate) const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
pub(crate) const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
pub(crate) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(crate) const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
pub(crate) const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub(crate) const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
pub(crate) const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
pub(crate) const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
pub(crate) const RATE_LIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
pub(crate) const RATE_LIMIT_REMAINING: HeaderName =
    HeaderName::from_static("x-ratelimit-remaining");
pub(crate) const RATE_LIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
pub(crate) const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");
pub(crate) const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// Returns true if the proxy writes the response field of this name itself, in the head of the
/// final response.
pub(crate) fn is_own(name: &HeaderName) -> bool {
    [
        CORRELATION_ID,
        RATE_LIMIT_LIMIT,
        RATE_LIMIT_REMAINING,
        RATE_LIMIT_RESET,
    ]
    .contains(name)
}
