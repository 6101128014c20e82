//! The cookie of a session.

use axum::http::header::{self, InvalidHeaderValue};
use axum::http::{HeaderMap, HeaderValue};
use control_app::NewSession;
use control_auth::Secret;

/// A browser is known this long, in seconds: 90 days, as long as the database knows it.
const KNOWN_SECS: u32 = 90 * 24 * 60 * 60;

/// How browsers reach the interface, which decides on the name and the flags of the cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionCookie {
    /// By TLS, also where a balancer speaks it: no other host and no page in clear can set the cookie.
    #[default]
    Tls,
    /// In clear, on the machine itself.
    Loopback,
}

impl SessionCookie {
    /// Its name. Browsers take the prefix `__Host-` by TLS alone, and not from another host of the domain
    /// (RFC 6265bis, section 4.1.3.2).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tls => "__Host-session",
            Self::Loopback => "session",
        }
    }

    /// The name of the cookie by which a browser is known that signed in before. It is no credential.
    pub const fn browser_name(self) -> &'static str {
        match self {
            Self::Tls => "__Host-browser",
            Self::Loopback => "browser",
        }
    }

    /// The field that gives a browser its session.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderValue`] if the secret is no Base64-URL.
    pub fn set(self, secret: &Secret) -> Result<HeaderValue, InvalidHeaderValue> {
        self.field(self.name(), secret.reveal(), "")
    }

    /// The field by which a browser is known from now on.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderValue`] if the secret is no Base64-URL.
    pub fn set_browser(self, secret: &Secret) -> Result<HeaderValue, InvalidHeaderValue> {
        let lasting = format!("; Max-Age={KNOWN_SECS}");
        self.field(self.browser_name(), secret.reveal(), &lasting)
    }

    /// The fields that give a browser its new session, and a name to be known by.
    pub fn set_all(self, new: &NewSession) -> Vec<HeaderValue> {
        let browser = new.browser.as_ref();
        let browser = browser.map(|browser| self.set_browser(browser));
        let fields = [Some(self.set(&new.secret)), browser];
        // Secrets of ours are Base64-URL, which every field takes.
        fields
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .collect()
    }

    /// The field that takes the session from a browser.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderValue`] never: the field is a constant.
    pub fn clear(self) -> Result<HeaderValue, InvalidHeaderValue> {
        self.field(self.name(), "", "; Max-Age=0")
    }

    fn field(
        self,
        name: &str,
        secret: &str,
        lifetime: &str,
    ) -> Result<HeaderValue, InvalidHeaderValue> {
        let secure = match self {
            Self::Tls => "; Secure",
            Self::Loopback => "",
        };
        HeaderValue::try_from(format!(
            "{name}={secret}; Path=/; HttpOnly; SameSite=Lax{secure}{lifetime}"
        ))
    }
}

/// The value of the cookie; empty, which no secret is, if there are several: a program in front of this one may have
/// looked at another one.
pub(crate) fn only_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let mut values = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter_map(|(own, value)| (own == name).then_some(value));
    let first = values.next()?;
    let is_only = values.next().is_none();
    Some(if is_only { first } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_by_tls_is_never_sent_in_clear() {
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
