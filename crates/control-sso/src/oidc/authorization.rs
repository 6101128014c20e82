//! The authorization request, which the browser takes to the provider.

use crate::web_url::WebUrl;
use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

/// Secrets of a sign-in in progress. The server stores it under the hash of `state`, and uses it
/// once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Binds the callback to this attempt.
    pub state: String,
    /// Binds the ID token to this attempt.
    pub nonce: String,
    /// The PKCE code verifier (RFC 7636).
    pub verifier: String,
}

impl Attempt {
    /// Creates an attempt from three times 32 random bytes.
    pub fn new(random: [[u8; 32]; 3]) -> Self {
        let [state, nonce, verifier] = random.map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
        Self {
            state,
            nonce,
            verifier,
        }
    }

    /// PKCE code challenge, by the method `S256`.
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, self.verifier.as_bytes()))
    }
}

/// An authorization request.
#[derive(Clone, Copy, Debug)]
pub struct AuthorizationRequest<'a> {
    /// The provider's authorization endpoint.
    pub endpoint: &'a WebUrl,
    /// Client identifier at the provider.
    pub client_id: &'a str,
    /// Callback URL of this service.
    pub redirect_uri: &'a str,
    /// Requested scopes; `openid` is added if it is missing.
    pub scopes: &'a [String],
    /// The attempt's secrets, which the callback and the ID token must match.
    pub attempt: &'a Attempt,
    /// Whether the provider must authenticate the user again despite an existing session (OpenID
    /// Connect Core, section 3.1.2.1).
    pub forces_login: bool,
}

impl AuthorizationRequest<'_> {
    /// URL to redirect the browser to.
    pub fn url(&self) -> String {
        let is_named = self.scopes.iter().any(|own| own == "openid");
        let first = (!is_named).then_some("openid");
        let scopes = first
            .into_iter()
            .chain(self.scopes.iter().map(String::as_str));
        let scope = scopes.collect::<Vec<_>>().join(" ");
        let mut query = form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", self.client_id)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("scope", &scope)
            .append_pair("state", &self.attempt.state)
            .append_pair("nonce", &self.attempt.nonce)
            .append_pair("code_challenge", &self.attempt.challenge())
            .append_pair("code_challenge_method", "S256");
        if self.forces_login {
            // With `max_age`, the provider must include `auth_time` in the token.
            query
                .append_pair("prompt", "login")
                .append_pair("max_age", "0");
        }
        self.endpoint.with_query(&query.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        let attempt = Attempt {
            state: String::new(),
            nonce: String::new(),
            verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned(),
        };
        let expected = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert_eq!(attempt.challenge(), expected);
    }

    #[test]
    fn the_scope_always_has_openid_once() {
        let attempt = Attempt::new([[1; 32]; 3]);
        let endpoint = WebUrl::parse("https://idp.test/authorize?tenant=7").unwrap();
        let request = |scopes: &[&str], forces_login| {
            let scopes: Vec<String> = scopes.iter().map(|own| (*own).to_owned()).collect();
            AuthorizationRequest {
                endpoint: &endpoint,
                client_id: "a&b",
                redirect_uri: "https://sp.test/callback",
                scopes: &scopes,
                attempt: &attempt,
                forces_login,
            }
            .url()
        };
        let url = |scopes: &[&str]| request(scopes, false);
        assert!(!url(&[]).contains("prompt="));
        assert!(request(&[], true).ends_with("&prompt=login&max_age=0"));
        assert!(url(&[]).contains("&scope=openid&"));
        assert!(url(&["email"]).contains("&scope=openid+email&"));
        assert!(url(&["openid", "email"]).contains("&scope=openid+email&"));
        let start = "https://idp.test/authorize?tenant=7&response_type=code&client_id=a%26b&";
        assert!(url(&[]).starts_with(start));
    }
}
