//! Paths: identifiers in them, and paths to return to.

use crate::request::failure::Failure;
use axum::extract::{self, FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use form_urlencoded::byte_serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// Identifiers in the path; only UUIDs with hyphens match a page.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let found = RawPathParams::from_request_parts(parts, state).await;
        let found = found.map_err(|_| Failure::not_found())?;
        let is_wrong = |(name, text): (&str, &str)| name != "command" && !is_hyphenated(text);
        if found.iter().any(is_wrong) {
            return Err(Failure::not_found());
        }
        let read = extract::Path::from_request_parts(parts, state).await;
        let extract::Path(value) = read.map_err(|_| Failure::not_found())?;
        Ok(Self(value))
    }
}

/// Other spellings of a UUID are refused: each page has exactly one URL.
fn is_hyphenated(text: &str) -> bool {
    text.len() == Hyphenated::LENGTH && Uuid::try_parse(text).is_ok()
}

/// Returns true for a path on this server. Browsers take `//host` and `/\host` for another server.
pub(crate) fn is_own_path(text: &str) -> bool {
    let mut bytes = text.bytes();
    let is_rooted = bytes.next() == Some(b'/') && !matches!(bytes.next(), Some(b'/' | b'\\'));
    is_rooted && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Adds the parameter for the redirect back to `path`.
pub(crate) fn with_return_path(path: &str, back: &str) -> String {
    let back: String = byte_serialize(back.as_bytes()).collect();
    format!("{path}?return={back}")
}

/// The path if it is on this server, or else `/`.
pub(crate) fn own_or_root(text: &str) -> &str {
    if is_own_path(text) { text } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_redirect_targets() {
        for (text, is_own) in [
            ("/", true),
            ("/projects/1?state=offline", true),
            ("", false),
            ("projects", false),
            ("//example.com", false),
            ("/\\example.com", false),
            ("https://example.com/", false),
            ("/a\r\nSet-Cookie: b", false),
        ] {
            assert_eq!(is_own_path(text), is_own, "{text:?}");
        }
    }
}
