//! The status line after a change: the form leaves it in a cookie, the next page shows it once.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use control_http::{SessionCookie, cookie};

const NAME: &str = "note";
/// Lifetime of a note, which the next page shows.
const SECONDS: u32 = 60;
/// Maximum length of a note, so that the cookie stays within the browsers' limit of 4 KiB.
const MAX_CHARS: usize = 600;

/// The outcome of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// True if it was carried out.
    pub(crate) is_good: bool,
    /// One sentence.
    pub(crate) text: String,
}

impl Note {
    /// The form was carried out.
    pub(crate) fn good(text: impl Into<String>) -> Self {
        Self {
            is_good: true,
            text: text.into(),
        }
    }

    /// The form was refused.
    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self {
            is_good: false,
            text: text.into(),
        }
    }

    /// 303 to `path`; the page there shows the note.
    pub(crate) fn at(&self, path: &str, cookies: SessionCookie) -> Response {
        let mut response = see(path);
        let mark = if self.is_good { '+' } else { '-' };
        let text: String = self.text.chars().take(MAX_CHARS).collect();
        let value = URL_SAFE_NO_PAD.encode(format!("{mark}{text}"));
        if let Ok(field) = cookies.field(NAME, &value, Some(SECONDS)) {
            response.headers_mut().append(header::SET_COOKIE, field);
        }
        response
    }

    /// The note that the form before left.
    pub(crate) fn from_request(headers: &HeaderMap, cookies: SessionCookie) -> Option<Self> {
        let value = cookie(headers, &cookies.named(NAME))?;
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(value).ok()?).ok()?;
        if let Some(text) = text.strip_prefix('+') {
            return Some(Self::good(text));
        }
        text.strip_prefix('-').map(Self::bad)
    }

    /// The field that deletes the note, once it was shown.
    pub(crate) fn shown(cookies: SessionCookie) -> Option<HeaderValue> {
        cookies.field(NAME, "", Some(0)).ok()
    }
}

/// 303 to a path of this server.
pub(crate) fn see(path: &str) -> Response {
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
