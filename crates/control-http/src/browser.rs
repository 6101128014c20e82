//! The browser that sent a request, by its `User-Agent`.

use axum::http::{HeaderMap, header};
use control_domain::shortened_browser;

/// The `User-Agent`, shortened for lists of sessions; empty without one.
pub fn browser(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok());
    shortened_browser(agent.unwrap_or_default())
}
