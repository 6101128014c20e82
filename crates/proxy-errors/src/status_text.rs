//! Reason phrases.

use http::StatusCode;

/// The reason phrase of `status`, for status lines and pages; empty for unregistered codes.
#[must_use]
pub fn status_text(status: StatusCode) -> &'static str {
    match status.as_u16() {
        495 => "SSL Certificate Error",
        499 => "Client Closed Request",
        _ => status.canonical_reason().unwrap_or_default(),
    }
}
