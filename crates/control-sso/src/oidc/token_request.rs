//! The exchange of an authorization code for tokens.

use super::authorization::Attempt;
use super::callback::{CallbackCode, refusal};
use super::error::OidcError;
use serde::Deserialize;
use std::fmt;
use zeroize::Zeroizing;

const ANSWER: &str = "the token endpoint's answer";

/// Request that exchanges an authorization code for tokens.
#[derive(Clone, Copy)]
pub struct TokenRequest<'a> {
    /// Client identifier at the provider.
    pub client_id: &'a str,
    /// Client secret.
    pub client_secret: &'a str,
    /// Callback URL, equal to the authorization request's.
    pub redirect_uri: &'a str,
    /// The attempt, for its PKCE code verifier.
    pub attempt: &'a Attempt,
    /// Code of the callback, valid once.
    pub code: &'a CallbackCode,
    /// Whether the secret is sent in the form instead of in `Authorization`.
    pub secret_in_form: bool,
}

/// Credentials for HTTP Basic, encoded by RFC 6749, section 2.3.1.
#[derive(Clone)]
pub struct BasicAuthentication {
    /// Client identifier.
    pub user: String,
    /// Client secret.
    pub password: Zeroizing<String>,
}

/// The tokens of a successful exchange.
#[derive(Clone, Deserialize)]
pub struct Tokens {
    /// ID token, not verified yet.
    pub id_token: String,
    /// Access token for the user-info endpoint.
    pub access_token: String,
}

#[derive(Deserialize)]
struct TokenError {
    error: String,
}

impl TokenRequest<'_> {
    /// Body of the request, form-encoded; wiped on drop because it contains credentials.
    pub fn form(&self) -> Zeroizing<String> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", &self.code.0)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("code_verifier", &self.attempt.verifier);
        if self.secret_in_form {
            form.append_pair("client_id", self.client_id)
                .append_pair("client_secret", self.client_secret);
        }
        Zeroizing::new(form.finish())
    }

    /// Credentials for `Authorization`; `None` if the form contains them.
    pub fn basic(&self) -> Option<BasicAuthentication> {
        let encoded =
            |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        (!self.secret_in_form).then(|| BasicAuthentication {
            user: encoded(self.client_id),
            password: Zeroizing::new(encoded(self.client_secret)),
        })
    }
}

impl Tokens {
    /// Parses the token endpoint's response; `is_success` means a 2xx status.
    ///
    /// # Errors
    ///
    /// [`OidcError::Refused`] with the endpoint's error code, or [`OidcError::Malformed`].
    pub fn parse(is_success: bool, json: &[u8]) -> Result<Self, OidcError> {
        if is_success {
            return serde_json::from_slice(json).map_err(|_| OidcError::Malformed(ANSWER));
        }
        let error: TokenError =
            serde_json::from_slice(json).map_err(|_| OidcError::Malformed(ANSWER))?;
        Err(refusal(&error.error))
    }
}

impl fmt::Debug for TokenRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenRequest({})", self.client_id)
    }
}

impl fmt::Debug for BasicAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BasicAuthentication({})", self.user)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_sent_in_one_place() {
        let attempt = Attempt::new([[1; 32]; 3]);
        let request = |secret_in_form| {
            TokenRequest {
                client_id: "a b",
                client_secret: "s:&",
                redirect_uri: "https://sp.test/cb",
                attempt: &attempt,
                code: &CallbackCode("c".to_owned()),
                secret_in_form,
            }
            .form()
        };
        assert!(!request(false).contains("client_secret"));
        assert!(request(true).ends_with("&client_id=a+b&client_secret=s%3A%26"));
        let code = CallbackCode("c".to_owned());
        let basic = TokenRequest {
            client_id: "a b",
            client_secret: "s:&",
            redirect_uri: "",
            attempt: &attempt,
            code: &code,
            secret_in_form: false,
        };
        let basic = basic.basic().unwrap();
        assert_eq!(
            (basic.user.as_str(), basic.password.as_str()),
            ("a+b", "s%3A%26")
        );
    }

    #[test]
    fn an_error_of_the_endpoint_is_named_and_nothing_else_repeated() {
        let parse = |is_success, text: &str| Tokens::parse(is_success, text.as_bytes()).map(drop);
        let cases = [
            (true, r#"{"id_token":"a","access_token":"b"}"#, Ok(())),
            (
                true,
                r#"{"id_token":"a"}"#,
                Err(OidcError::Malformed(ANSWER)),
            ),
            (
                false,
                r#"{"error":"invalid_grant"}"#,
                Err(OidcError::Refused("invalid_grant")),
            ),
            (
                false,
                r#"{"error":"<b>"}"#,
                Err(OidcError::Refused("an unknown error code")),
            ),
            (
                false,
                r#"{"id_token":"a","access_token":"b"}"#,
                Err(OidcError::Malformed(ANSWER)),
            ),
            (false, "<html>", Err(OidcError::Malformed(ANSWER))),
        ];
        for (is_success, text, expected) in cases {
            assert_eq!(parse(is_success, text), expected, "{text}");
        }
    }
}
