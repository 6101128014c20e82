//! Metadata: parses the identity provider's, generates the service provider's.

use super::document::{
    DSIG, METADATA, attribute, children, normal_line_ends, only, parse_metadata, value,
};
use super::error::SamlError;
use super::request::escape;
use crate::web_url::WebUrl;
use roxmltree::Node;

const REDIRECT: &str = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect";

/// The parts of an identity provider's metadata that sign-in needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdpMetadata {
    /// Entity ID, the issuer of its assertions.
    pub entity_id: String,
    /// Sign-in URL for the HTTP-Redirect binding.
    pub sso_url: WebUrl,
    /// Signing certificates as DER in Base64, in document order.
    pub certificates: Vec<String>,
    /// Whether the provider refuses unsigned requests.
    pub wants_signed_requests: bool,
}

/// Metadata of this service provider, for one connection.
#[derive(Clone, Copy, Debug)]
pub struct SpMetadata<'a> {
    /// Entity ID of the service provider.
    pub entity_id: &'a str,
    /// URL of the assertion consumer service.
    pub acs_url: &'a str,
    /// Certificate of the key that signs requests, as DER in Base64.
    pub certificate: &'a str,
    /// Whether requests are signed.
    pub signs_requests: bool,
}

impl IdpMetadata {
    /// Parses entity ID, HTTP-Redirect URL and signing certificates.
    ///
    /// # Errors
    ///
    /// [`SamlError::Metadata`] if one of them is missing, or [`SamlError::Xml`].
    pub fn parse(xml: &[u8]) -> Result<Self, SamlError> {
        let text = normal_line_ends(xml)?;
        let document = parse_metadata(&text)?;
        let root = document.root_element();
        if !root.has_tag_name((METADATA, "EntityDescriptor")) {
            return Err(SamlError::Metadata("one EntityDescriptor as its root"));
        }
        let entity_id = attribute(root, "entityID").ok_or(SamlError::Metadata("an entityID"))?;
        let idp = only(root, METADATA, "IDPSSODescriptor");
        let idp = idp.ok_or(SamlError::Metadata("one IDPSSODescriptor"))?;
        let sso_url = children(idp, METADATA, "SingleSignOnService")
            .into_iter()
            .filter(|own| attribute(*own, "Binding") == Some(REDIRECT))
            .find_map(|own| WebUrl::parse(attribute(own, "Location")?));
        let missing = SamlError::Metadata("a SingleSignOnService with HTTP-Redirect");
        let certificates = signing_certificates(idp);
        if certificates.is_empty() {
            return Err(SamlError::Metadata("a signing certificate"));
        }
        Ok(Self {
            entity_id: entity_id.to_owned(),
            sso_url: sso_url.ok_or(missing)?,
            certificates,
            wants_signed_requests: matches!(
                attribute(idp, "WantAuthnRequestsSigned"),
                Some("true" | "1")
            ),
        })
    }
}

fn signing_certificates(idp: Node<'_, '_>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for key in children(idp, METADATA, "KeyDescriptor") {
        if attribute(key, "use").is_some_and(|own| own != "signing") {
            continue;
        }
        let named = key
            .descendants()
            .filter(|node| node.has_tag_name((DSIG, "X509Certificate")));
        for text in named.filter_map(value) {
            let certificate: String = text.split_ascii_whitespace().collect();
            if !found.contains(&certificate) {
                found.push(certificate);
            }
        }
    }
    found
}

impl SpMetadata<'_> {
    /// XML document for the identity provider to import.
    pub fn xml(&self) -> String {
        let Self {
            entity_id,
            acs_url,
            certificate,
            signs_requests,
        } = *self;
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <md:EntityDescriptor xmlns:md=\"{METADATA}\" entityID=\"{}\">\
             <md:SPSSODescriptor AuthnRequestsSigned=\"{signs_requests}\" WantAssertionsSigned=\"true\" \
             protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\">\
             <md:KeyDescriptor use=\"signing\"><ds:KeyInfo xmlns:ds=\"{DSIG}\"><ds:X509Data>\
             <ds:X509Certificate>{certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>\
             <md:AssertionConsumerService Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST\" \
             Location=\"{}\" index=\"0\" isDefault=\"true\"/></md:SPSSODescriptor></md:EntityDescriptor>\n",
            escape(entity_id),
            escape(acs_url)
        )
    }
}
