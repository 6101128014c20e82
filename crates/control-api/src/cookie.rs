//! The cookie of a session.

use axum::http::HeaderValue;
use axum::http::header::InvalidHeaderValue;
use control_auth::Secret;

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
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tls => "__Host-session",
            Self::Loopback => "session",
        }
    }

    /// The field that gives a browser its session.
    ///
    /// # Errors
    ///
    /// [`InvalidHeaderValue`] if the secret is no Base64-URL.
    pub(crate) fn set(self, secret: &Secret) -> Result<HeaderValue, InvalidHeaderValue> {
        let (name, secret) = (self.name(), secret.reveal());
        let secure = match self {
            Self::Tls => "; Secure",
            Self::Loopback => "",
        };
        HeaderValue::try_from(format!(
            "{name}={secret}; Path=/; HttpOnly; SameSite=Lax{secure}"
        ))
    }
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
