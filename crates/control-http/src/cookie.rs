//! Cookies of sessions, browsers, sign-ins and notes, and parsing of any cookie.

use axum::http::header::InvalidHeaderValue;
use axum::http::{HeaderMap, HeaderValue, header};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use control_app::NewSession;
use control_auth::Secret;

/// Lifetime of a known browser's cookie, in seconds: 90 days, equal to the database's retention.
const KNOWN_SECS: u32 = 90 * 24 * 60 * 60;
/// Lifetime of a sign-in through an identity provider, in seconds.
const ATTEMPT_SECS: u32 = 600;
/// Lifetime of a note, which the next page shows, in seconds.
const NOTE_SECS: u32 = 60;
/// Maximum length of a note, so that the cookie stays within the browsers' limit of 4 KiB.
const MAX_NOTE_CHARS: usize = 600;

/// Scheme by which browsers reach the interface; determines names and flags of cookies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionCookie {
    /// HTTPS, also if a balancer terminates TLS: no other host and no plaintext page can set the
    /// cookie.
    #[default]
    Tls,
    /// Plain HTTP on this machine.
    Loopback,
}

impl SessionCookie {
    /// Name of the session's cookie. Browsers accept the prefix `__Host-` only over TLS, and not
    /// from another host of the domain (RFC 6265bis, section 4.1.3.2).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tls => "__Host-session",
            Self::Loopback => "session",
        }
    }

    /// Name of the cookie that marks a browser with an earlier sign-in. Not a credential.
    pub const fn browser_name(self) -> &'static str {
        match self {
            Self::Tls => "__Host-browser",
            Self::Loopback => "browser",
        }
    }

    /// Name of the cookie of a sign-in that an identity provider continues.
    pub const fn attempt_name(self) -> &'static str {
        match self {
            Self::Tls => "__Host-sign-in",
            Self::Loopback => "sign-in",
        }
    }

    /// The name of another cookie, with the same prefix.
    pub fn named(self, name: &str) -> String {
        match self {
            Self::Tls => format!("__Host-{name}"),
            Self::Loopback => name.to_owned(),
        }
    }

    /// The `Set-Cookie` field of a session.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderValue`] if the secret is not Base64-URL.
    pub fn set(self, secret: &Secret) -> Result<HeaderValue, InvalidHeaderValue> {
        self.field("session", secret.reveal(), None)
    }

    /// The `Set-Cookie` fields of a new session, and of the known browser.
    pub fn set_all(self, new: &NewSession) -> Vec<HeaderValue> {
        let browser = new.browser.as_ref();
        let browser = browser.map(|browser| self.set_browser(browser));
        // These secrets are Base64-URL, which is valid in every field.
        [Some(self.set(&new.secret)), browser]
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .collect()
    }

    /// The `Set-Cookie` field of a known browser.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderValue`] if the secret is not Base64-URL.
    pub fn set_browser(self, secret: &Secret) -> Result<HeaderValue, InvalidHeaderValue> {
        self.field("browser", secret.reveal(), Some(KNOWN_SECS))
    }

    /// The `Set-Cookie` field that deletes the session's cookie.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderValue`] never: the field is a constant.
    pub fn clear(self) -> Result<HeaderValue, InvalidHeaderValue> {
        self.field("session", "", Some(0))
    }

    /// The `Set-Cookie` field that binds a sign-in to the browser that began it, for ten minutes.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderValue`] if the secret is not Base64-URL.
    pub fn set_attempt(self, secret: &Secret) -> Result<HeaderValue, InvalidHeaderValue> {
        self.field("sign-in", secret.reveal(), Some(ATTEMPT_SECS))
    }

    /// The `Set-Cookie` field that deletes the sign-in's cookie.
    pub fn end_attempt(self) -> Option<HeaderValue> {
        self.field("sign-in", "", Some(0)).ok()
    }

    /// The `Set-Cookie` field of a sentence that the next page shows once; `is_good` for a success.
    pub fn set_note(self, is_good: bool, text: &str) -> Option<HeaderValue> {
        let mark = if is_good { '+' } else { '-' };
        let text: String = text.chars().take(MAX_NOTE_CHARS).collect();
        let value = URL_SAFE_NO_PAD.encode(format!("{mark}{text}"));
        self.field("note", &value, Some(NOTE_SECS)).ok()
    }

    /// The `Set-Cookie` field that deletes the note.
    pub fn end_note(self) -> Option<HeaderValue> {
        self.field("note", "", Some(0)).ok()
    }

    /// The note in a request, with true for a success; `None` if it is missing or malformed.
    pub fn note(self, headers: &HeaderMap) -> Option<(bool, String)> {
        let value = cookie(headers, &self.named("note"))?;
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(value).ok()?).ok()?;
        if let Some(text) = text.strip_prefix('+') {
            return Some((true, text.to_owned()));
        }
        text.strip_prefix('-').map(|text| (false, text.to_owned()))
    }

    /// A `Set-Cookie` field, for `max_age` seconds or until the browser is closed; 0 deletes the
    /// cookie.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderValue`] if the value has control characters.
    pub fn field(
        self,
        name: &str,
        value: &str,
        max_age: Option<u32>,
    ) -> Result<HeaderValue, InvalidHeaderValue> {
        let name = self.named(name);
        let secure = match self {
            Self::Tls => "; Secure",
            Self::Loopback => "",
        };
        let age = max_age.map_or(String::new(), |seconds| format!("; Max-Age={seconds}"));
        HeaderValue::try_from(format!(
            "{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{age}"
        ))
    }
}

/// The value of the cookie `name`, if the request has it; empty, which is no valid secret, if the
/// request has it twice: a proxy in front may have checked the other one.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut found = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter_map(|(own, value)| (own == name).then_some(value));
    let first = found.next()?;
    let is_only = found.next().is_none();
    Some(if is_only { first } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_cookie_over_tls_is_secure() {
        let secret = Secret::presented("abc");
        let by = |cookie: SessionCookie| cookie.set(&secret).unwrap();
        let flags = "Path=/; HttpOnly; SameSite=Lax";
        assert_eq!(
            by(SessionCookie::Tls),
            format!("__Host-session=abc; {flags}; Secure")
        );
        assert_eq!(by(SessionCookie::Loopback), format!("session=abc; {flags}"));
    }
}
