//! Parameters of the callback that the browser requests.

use super::error::OidcError;
use aws_lc_rs::constant_time;

/// Error codes of RFC 6749 (sections 4.1.2.1 and 5.2) and OpenID Connect Core (section 3.1.2.6).
/// Only these are shown.
const REFUSALS: &[&str] = &[
    "access_denied",
    "account_selection_required",
    "consent_required",
    "interaction_required",
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_request_object",
    "invalid_scope",
    "login_required",
    "registration_not_supported",
    "request_not_supported",
    "request_uri_not_supported",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
];

/// Parameters of the callback; each at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Callback {
    /// The parameter `state`.
    pub state: Option<String>,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// Authorization code of a verified callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackCode(pub(super) String);

impl Callback {
    /// Parses the query of a callback; unknown parameters are ignored (RFC 6749, section 4.1.2).
    ///
    /// # Errors
    ///
    /// [`OidcError::NoCode`] for a repeated parameter.
    pub fn parse(query: &str) -> Result<Self, OidcError> {
        let mut callback = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let field = match &*name {
                "state" => &mut callback.state,
                "code" => &mut callback.code,
                "iss" => &mut callback.iss,
                "error" => &mut callback.error,
                _ => continue,
            };
            if field.replace(value.into_owned()).is_some() {
                return Err(OidcError::NoCode);
            }
        }
        Ok(callback)
    }

    /// Returns the code if the callback matches `state` and `issuer`. `requires_iss` is set if the
    /// provider announces RFC 9207.
    ///
    /// # Errors
    ///
    /// [`OidcError::State`], [`OidcError::CallbackIssuer`], [`OidcError::Refused`] or [`OidcError::NoCode`].
    pub fn check(
        self,
        state: &str,
        issuer: &str,
        requires_iss: bool,
    ) -> Result<CallbackCode, OidcError> {
        let own = self.state.unwrap_or_default();
        constant_time::verify_slices_are_equal(own.as_bytes(), state.as_bytes())
            .map_err(|_| OidcError::State)?;
        match &self.iss {
            Some(iss) if iss != issuer => return Err(OidcError::CallbackIssuer),
            None if requires_iss => return Err(OidcError::CallbackIssuer),
            _ => {}
        }
        if let Some(error) = &self.error {
            return Err(refusal(error));
        }
        let code = self.code.filter(|code| !code.is_empty());
        code.map(CallbackCode).ok_or(OidcError::NoCode)
    }
}

/// Error for the provider's refusal. Codes outside of the standards are not repeated.
pub(super) fn refusal(code: &str) -> OidcError {
    let known = REFUSALS.iter().find(|own| **own == code);
    OidcError::Refused(known.copied().unwrap_or("an unknown error code"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_is_of_its_attempt_and_its_issuer() {
        let check = |query: &str, requires_iss| {
            Callback::parse(query)?.check("s1", "https://idp.test", requires_iss)
        };
        let code = Ok(CallbackCode("c".to_owned()));
        let iss = "iss=https%3A%2F%2Fidp.test";
        let cases = [
            ("state=s1&code=c", false, code.clone()),
            (&format!("state=s1&code=c&{iss}"), true, code.clone()),
            (
                &format!("state=s1&code=c&{iss}&session_state=x"),
                false,
                code,
            ),
            ("state=s2&code=c", false, Err(OidcError::State)),
            ("code=c", false, Err(OidcError::State)),
            ("state=s1&code=c", true, Err(OidcError::CallbackIssuer)),
            (
                "state=s1&code=c&iss=https%3A%2F%2Fevil.test",
                false,
                Err(OidcError::CallbackIssuer),
            ),
            (
                "state=s1&error=access_denied",
                false,
                Err(OidcError::Refused("access_denied")),
            ),
            (
                "state=s1&code=c&error=access_denied",
                false,
                Err(OidcError::Refused("access_denied")),
            ),
            (
                "state=s1&error=%3Cscript%3E",
                false,
                Err(OidcError::Refused("an unknown error code")),
            ),
            ("state=s1", false, Err(OidcError::NoCode)),
            ("state=s1&code=", false, Err(OidcError::NoCode)),
            ("state=s1&code=c&code=d", false, Err(OidcError::NoCode)),
            ("state=s1&state=s1&code=c", false, Err(OidcError::NoCode)),
        ];
        for (query, requires_iss, expected) in cases {
            assert_eq!(check(query, requires_iss), expected, "{query}");
        }
    }
}
