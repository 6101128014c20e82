//! Status line after a form: stored in a cookie, and shown once by the next page.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control_http::SessionCookie;

/// Outcome of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Whether the form was executed.
    pub(crate) is_good: bool,
    /// One sentence.
    pub(crate) text: String,
}

impl Note {
    /// Outcome of a form that was executed.
    pub(crate) fn good(text: impl Into<String>) -> Self {
        Self {
            is_good: true,
            text: text.into(),
        }
    }

    /// Outcome of a form that was refused.
    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self {
            is_good: false,
            text: text.into(),
        }
    }

    /// Redirects to `path` (303), where the page shows the note.
    pub(crate) fn at(&self, path: &str, cookies: SessionCookie) -> Response {
        let mut response = redirect(path);
        if let Some(field) = cookies.set_note(self.is_good, &self.text) {
            response.headers_mut().append(header::SET_COOKIE, field);
        }
        response
    }

    /// Note that the previous form left.
    pub(crate) fn from_request(headers: &HeaderMap, cookies: SessionCookie) -> Option<Self> {
        let (is_good, text) = cookies.note(headers)?;
        Some(Self { is_good, text })
    }
}

/// Redirects to a path of this server (303).
pub(crate) fn redirect(path: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(path) = HeaderValue::try_from(path) {
        response.headers_mut().insert(header::LOCATION, path);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_survives_the_cookie_unchanged() {
        let cookies = SessionCookie::Tls;
        let note = Note::bad("Another person must approve; “é”.");
        let response = note.at("/projects", cookies);
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let left = response.headers()[header::SET_COOKIE].to_str().unwrap();
        let pair = left.split(';').next().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, pair.parse().unwrap());
        assert_eq!(Note::from_request(&headers, cookies), Some(note));
        headers.insert(header::COOKIE, "__Host-note=%".parse().unwrap());
        assert_eq!(Note::from_request(&headers, cookies), None);
    }
}
