//! SAML 2.0 Web Browser SSO: the service provider's side.
//!
//! Supported profile: HTTP-Redirect for the request, HTTP-POST for the response; response or
//! assertion signed; exclusive canonicalization; RSA or ECDSA with SHA-2. Claims are read only from
//! the canonical bytes that the verified digest covers, parsed again.

mod canonical;
mod claims;
mod document;
mod error;
mod idp_key;
mod metadata;
mod request;
mod signature;
mod sp_key;

pub use canonical::canonicalize;
pub use claims::{Claims, Expected, Solicited};
pub use document::normal_line_ends;
pub use error::SamlError;
pub use idp_key::IdpKey;
pub use metadata::{IdpMetadata, SpMetadata};
pub use request::{AuthnRequest, request_id};
pub use sp_key::SpKey;

use jiff::Timestamp;

/// Verifies a response and returns its claims.
///
/// The caller must then insert [`Claims::replay_key`] into a set shared by all replicas, until
/// [`Claims::not_on_or_after`]. If the key is already present, the response is a replay.
///
/// # Errors
///
/// The first violated rule.
pub fn accept(
    xml: &[u8],
    keys: &[IdpKey],
    expected: &Expected<'_>,
    now: Timestamp,
) -> Result<Claims, SamlError> {
    let text = normal_line_ends(xml)?;
    let document = document::parse(&text)?;
    let signed = signature::verify(&document, keys)?;
    claims::read(&document, &signed, expected, now)
}
