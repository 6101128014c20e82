//! Discovery of the provider's metadata (OpenID Connect Discovery 1.0).

use super::error::OidcError;
use crate::web_url::WebUrl;
use serde::Deserialize;

/// The members of the discovery document that sign-in needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// `authorization_endpoint`: URL to redirect browsers to.
    pub authorization_endpoint: WebUrl,
    /// `token_endpoint`: exchanges codes for tokens.
    pub token_endpoint: WebUrl,
    /// `userinfo_endpoint`, if there is one.
    pub userinfo_endpoint: Option<WebUrl>,
    /// `jwks_uri`: keys that verify ID tokens.
    pub jwks_uri: WebUrl,
    /// `end_session_endpoint` for RP-initiated logout, if there is one.
    pub end_session_endpoint: Option<WebUrl>,
    /// Whether callbacks always have `iss` (RFC 9207).
    pub sends_iss: bool,
    /// Whether the token endpoint accepts the client secret only in the form.
    pub wants_secret_in_form: bool,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    userinfo_endpoint: Option<String>,
    jwks_uri: Option<String>,
    end_session_endpoint: Option<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

/// URL of the discovery document of `issuer`.
pub fn discovery_url(issuer: &str) -> String {
    let issuer = issuer.trim_end_matches('/');
    format!("{issuer}/.well-known/openid-configuration")
}

impl Discovery {
    /// Parses the discovery document; its `issuer` must have exactly the same text.
    ///
    /// # Errors
    ///
    /// [`OidcError`] for another issuer, or for a missing or invalid endpoint.
    pub fn parse(json: &[u8], issuer: &str) -> Result<Self, OidcError> {
        let document: Document = serde_json::from_slice(json)
            .map_err(|_| OidcError::Malformed("the discovery document"))?;
        let Document {
            issuer: own_issuer,
            authorization_endpoint,
            token_endpoint,
            userinfo_endpoint,
            jwks_uri,
            end_session_endpoint,
            authorization_response_iss_parameter_supported: sends_iss,
            token_endpoint_auth_methods_supported: methods,
        } = document;
        if own_issuer != issuer {
            return Err(OidcError::DiscoveryIssuer);
        }
        let url = |text: Option<String>, name| {
            let url = text.and_then(|text| WebUrl::parse(&text));
            url.ok_or(OidcError::Discovery(name))
        };
        let has_basic = methods.iter().any(|own| own == "client_secret_basic");
        Ok(Self {
            authorization_endpoint: url(authorization_endpoint, "authorization_endpoint")?,
            token_endpoint: url(token_endpoint, "token_endpoint")?,
            userinfo_endpoint: userinfo_endpoint
                .map(|text| url(Some(text), "userinfo_endpoint"))
                .transpose()?,
            jwks_uri: url(jwks_uri, "jwks_uri")?,
            end_session_endpoint: end_session_endpoint.and_then(|text| WebUrl::parse(&text)),
            sends_iss,
            wants_secret_in_form: !methods.is_empty() && !has_basic,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn document() -> Value {
        json!({
            "issuer": "https://idp.test",
            "authorization_endpoint": "https://idp.test/authorize",
            "token_endpoint": "https://idp.test/token",
            "jwks_uri": "https://idp.test/keys",
        })
    }

    #[test]
    fn a_document_is_of_its_issuer_and_has_the_endpoints() {
        let parse =
            |value: &Value| Discovery::parse(value.to_string().as_bytes(), "https://idp.test");
        let found = parse(&document()).unwrap();
        assert_eq!(found.jwks_uri.as_str(), "https://idp.test/keys");
        assert!(!found.sends_iss && !found.wants_secret_in_form);
        let cases = [
            (
                "issuer",
                json!("https://idp.test/"),
                OidcError::DiscoveryIssuer,
            ),
            (
                "issuer",
                json!("https://evil.test"),
                OidcError::DiscoveryIssuer,
            ),
            ("jwks_uri", Value::Null, OidcError::Discovery("jwks_uri")),
            (
                "jwks_uri",
                json!("file:///keys"),
                OidcError::Discovery("jwks_uri"),
            ),
            (
                "authorization_endpoint",
                json!("javascript:alert(1)"),
                OidcError::Discovery("authorization_endpoint"),
            ),
            (
                "token_endpoint",
                json!(7),
                OidcError::Malformed("the discovery document"),
            ),
        ];
        for (name, value, expected) in cases {
            let mut changed = document();
            changed[name] = value;
            assert_eq!(parse(&changed), Err(expected), "{changed}");
        }
    }

    #[test]
    fn the_secret_is_sent_in_the_form_only_without_support_of_basic() {
        let with = |methods: Value| {
            let mut changed = document();
            changed["token_endpoint_auth_methods_supported"] = methods;
            let found = Discovery::parse(changed.to_string().as_bytes(), "https://idp.test");
            found.unwrap().wants_secret_in_form
        };
        assert!(with(json!(["client_secret_post", "private_key_jwt"])));
        assert!(!with(json!(["client_secret_post", "client_secret_basic"])));
        assert!(!with(json!([])));
    }
}
