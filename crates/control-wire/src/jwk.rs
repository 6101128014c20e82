//! Public signing keys as JSON Web Keys (RFC 7517, RFC 8037).

use crate::id::{OrgId, SigningKeyId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The public keys of an organization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JsonWebKeySet {
    /// The keys that verify, in the order of their creation.
    pub keys: Vec<JsonWebKey>,
    /// Deactivated keys, the newest 64. They verify nothing: a node that was offline follows their
    /// endorsements from a key that it pins to one that verifies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<JsonWebKey>,
}

impl From<Vec<JsonWebKey>> for JsonWebKeySet {
    /// Keys that verify, without any that was deactivated.
    fn from(keys: Vec<JsonWebKey>) -> Self {
        let ended = Vec::new();
        Self { keys, ended }
    }
}

/// A public key of an organization.
///
/// A later key is endorsed by the key that signed at that time: a node that pins the older one may
/// trust it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JsonWebKey {
    /// `OKP`
    pub kty: String,
    /// `Ed25519`
    pub crv: String,
    /// `EdDSA`
    pub alg: String,
    /// `sig`
    #[serde(rename = "use")]
    pub key_use: String,
    /// The key's identifier.
    pub kid: SigningKeyId,
    /// 32 bytes in Base64-URL.
    pub x: String,
    /// The key that signed for this one; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endorsed_by: Option<SigningKeyId>,
    /// Ed25519 over [`endorsed_text`], Base64-URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endorsement: Option<String>,
}

impl JsonWebKey {
    /// An Ed25519 key.
    pub fn ed25519(kid: SigningKeyId, x: String) -> Self {
        Self {
            kty: "OKP".to_owned(),
            crv: "Ed25519".to_owned(),
            alg: "EdDSA".to_owned(),
            key_use: "sig".to_owned(),
            kid,
            x,
            endorsed_by: None,
            endorsement: None,
        }
    }
}

/// Text that a key signs to endorse the key `kid` with the public half `x`.
pub fn endorsed_text(org: OrgId, kid: SigningKeyId, x: &str) -> String {
    format!("signing key v1\n{org}\n{kid}\n{x}\n")
}
