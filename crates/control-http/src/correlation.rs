//! The name of a request: the caller's if it is well formed, else a new one.

use axum::http::{HeaderMap, HeaderName};
use uuid::Uuid;

/// The name of the request, kept with it.
#[derive(Clone, Debug)]
pub struct CorrelationId(pub String);

impl CorrelationId {
    /// The field of requests and responses that carries it.
    pub const HEADER: HeaderName = HeaderName::from_static("x-correlation-id");

    /// The caller's ID, if it has 1 to 128 characters `[A-Za-z0-9._-]`; else a new one.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let known = headers.get(Self::HEADER);
        let known = known.and_then(|value| value.to_str().ok());
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let good = known.filter(|id| (1..=128).contains(&id.len()) && id.chars().all(plain));
        Self(good.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned))
    }
}
