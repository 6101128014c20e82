//! The authentication request, which the browser takes to the identity provider.

use super::error::SamlError;
use super::sp_key::SpKey;
use crate::web_url::WebUrl;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use flate2::{Compression, write::DeflateEncoder};
use jiff::Timestamp;
use std::io::Write;

const RSA_SHA256: &str = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256";

/// An authentication request.
#[derive(Clone, Debug)]
pub struct AuthnRequest<'a> {
    /// ID of the request, from [`request_id`].
    pub id: &'a str,
    /// Entity ID of the service provider.
    pub sp_entity_id: &'a str,
    /// URL of the assertion consumer service.
    pub acs_url: &'a str,
    /// Sign-in URL of the identity provider.
    pub sso_url: &'a WebUrl,
    /// Time of issue.
    pub now: Timestamp,
    /// Whether the provider must authenticate the user again despite an existing session (SAML
    /// core, section 3.4.1).
    pub force_authn: bool,
}

/// Creates a request ID from random bytes. An `xs:ID` begins with a letter or `_`.
pub fn request_id(random: [u8; 32]) -> String {
    format!("_{}", URL_SAFE_NO_PAD.encode(random))
}

impl AuthnRequest<'_> {
    /// XML document of the request. It requests no name format, because identity providers refuse
    /// formats for which they are not configured.
    pub fn xml(&self) -> String {
        let second = self.now.as_second();
        let now = Timestamp::from_second(second).unwrap_or(self.now);
        let force_authn = if self.force_authn {
            " ForceAuthn=\"true\""
        } else {
            ""
        };
        format!(
            "<samlp:AuthnRequest xmlns:samlp=\"urn:oasis:names:tc:SAML:2.0:protocol\" \
             xmlns:saml=\"urn:oasis:names:tc:SAML:2.0:assertion\" ID=\"{}\" Version=\"2.0\" \
             IssueInstant=\"{now}\"{force_authn} Destination=\"{}\" AssertionConsumerServiceURL=\"{}\" \
             ProtocolBinding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST\">\
             <saml:Issuer>{}</saml:Issuer></samlp:AuthnRequest>",
            escape(self.id),
            escape(self.sso_url.as_str()),
            escape(self.acs_url),
            escape(self.sp_entity_id)
        )
    }

    /// URL to redirect the browser to: HTTP-Redirect with DEFLATE (SAML bindings, section 3.4.4.1),
    /// signed if `key` is given.
    ///
    /// # Errors
    ///
    /// [`SamlError::OwnKey`] if signing fails.
    pub fn redirect(&self, relay_state: &str, key: Option<&SpKey>) -> Result<String, SamlError> {
        let mut query = form_urlencoded::Serializer::new(String::new())
            .append_pair("SAMLRequest", &STANDARD.encode(deflate(&self.xml())?))
            .append_pair("RelayState", relay_state)
            .finish();
        if let Some(key) = key {
            // The signature covers the encoded parameters in exactly this order.
            query = form_urlencoded::Serializer::new(query)
                .append_pair("SigAlg", RSA_SHA256)
                .finish();
            let signature = key.sign(query.as_bytes())?;
            query = form_urlencoded::Serializer::new(query)
                .append_pair("Signature", &signature)
                .finish();
        }
        Ok(self.sso_url.with_query(&query))
    }
}

/// Compresses in memory, which cannot fail; the `Result` only satisfies the writer's type.
fn deflate(text: &str) -> Result<Vec<u8>, SamlError> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(text.as_bytes());
    written
        .and_then(|()| encoder.finish())
        .map_err(|_| SamlError::OwnKey)
}

/// Escapes text for an attribute value or character data.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
