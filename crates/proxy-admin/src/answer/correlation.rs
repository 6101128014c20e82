//! Correlation IDs of requests.

use http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

pub(crate) const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");

/// Returns the ID in the request if it is valid, else a new one.
pub(crate) fn from_headers(headers: &HeaderMap) -> HeaderValue {
    let brought = headers.get(CORRELATION_ID);
    let kept = brought.filter(|id| is_acceptable(id.as_bytes()));
    kept.cloned().unwrap_or_else(fresh)
}

/// Creates an ID, a `UUIDv7`.
pub(crate) fn fresh() -> HeaderValue {
    let id = Uuid::now_v7().to_string();
    HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("none"))
}

/// Returns true if `id` has 1 to 128 characters of `[A-Za-z0-9._-]`.
fn is_acceptable(id: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=128).contains(&id.len()) && id.iter().all(allowed)
}
