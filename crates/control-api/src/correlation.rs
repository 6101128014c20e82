//! The name of a request: the caller's if it is well formed, else a new one.

use axum::http::{HeaderMap, HeaderName};
use uuid::Uuid;

pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-correlation-id");

/// The name of the request, kept with it.
#[derive(Clone, Debug)]
pub(crate) struct CorrelationId(pub(crate) String);

/// 1 to 128 characters `[A-Za-z0-9._-]` are kept.
pub(crate) fn id(headers: &HeaderMap) -> CorrelationId {
    let known = headers.get(HEADER).and_then(|value| value.to_str().ok());
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let good = known.filter(|id| (1..=128).contains(&id.len()) && id.chars().all(plain));
    CorrelationId(good.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned))
}
