//! A provider's key set, and the selection of the key for a token.

use super::error::OidcError;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, Header};
use serde::Deserialize;
use serde_json::Value;

const MAX_KEYS: usize = 100;
const MIN_RSA_BYTES: usize = 256;

/// Public keys of a provider that can verify signatures; other keys are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySet(Vec<Jwk>);

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl KeySet {
    /// Parses a key set of at most 100 keys (RFC 7517); skips keys that cannot be parsed.
    ///
    /// # Errors
    ///
    /// [`OidcError::Malformed`] if the document is not a key set, or has too many keys.
    pub fn parse(json: &[u8]) -> Result<Self, OidcError> {
        let malformed = OidcError::Malformed("the key set");
        let document: Document = serde_json::from_slice(json).map_err(|_| malformed)?;
        if MAX_KEYS < document.keys.len() {
            return Err(malformed);
        }
        let keys = document.keys.into_iter();
        let keys = keys.filter_map(|key| serde_json::from_value(key).ok());
        Ok(Self(keys.filter(verifies).collect()))
    }

    /// The key that signed a token with this header. Without `kid`, exactly one key must match.
    pub(super) fn find(&self, header: &Header) -> Result<&Jwk, OidcError> {
        let mut fitting = self.0.iter().filter(|key| {
            let is_named = header.kid.is_none() || header.kid == key.common.key_id;
            is_named && allows(key, header.alg)
        });
        let key = fitting.next().filter(|_| fitting.next().is_none());
        key.ok_or(OidcError::UnknownKey)
    }
}

/// Returns true if the key is public, long enough and usable for signatures.
fn verifies(key: &Jwk) -> bool {
    let common = &key.common;
    let signs = common
        .public_key_use
        .as_ref()
        .is_none_or(|own| *own == PublicKeyUse::Signature);
    let operations = common.key_operations.as_ref();
    let verifies = operations.is_none_or(|own| own.contains(&KeyOperations::Verify));
    let is_strong = match &key.algorithm {
        AlgorithmParameters::RSA(rsa) => {
            let modulus = URL_SAFE_NO_PAD.decode(&rsa.n).unwrap_or_default();
            MIN_RSA_BYTES <= modulus.iter().skip_while(|byte| **byte == 0).count()
        }
        AlgorithmParameters::EllipticCurve(_) | AlgorithmParameters::OctetKeyPair(_) => true,
        AlgorithmParameters::OctetKey(_) | AlgorithmParameters::Other(_) | _ => false,
    };
    signs && verifies && is_strong
}

/// Returns true if the key's type and optional `alg` permit the algorithm. Symmetric keys permit
/// none.
fn allows(key: &Jwk, algorithm: Algorithm) -> bool {
    use Algorithm as A;
    let by_kind = match &key.algorithm {
        AlgorithmParameters::RSA(_) => matches!(
            algorithm,
            A::RS256 | A::RS384 | A::RS512 | A::PS256 | A::PS384 | A::PS512
        ),
        AlgorithmParameters::EllipticCurve(ec) => {
            let pairs = [
                (EllipticCurve::P256, A::ES256),
                (EllipticCurve::P384, A::ES384),
            ];
            pairs.contains(&(ec.curve.clone(), algorithm))
        }
        AlgorithmParameters::OctetKeyPair(pair) => {
            pair.curve == EllipticCurve::Ed25519 && algorithm == A::EdDSA
        }
        AlgorithmParameters::OctetKey(_) | AlgorithmParameters::Other(_) | _ => false,
    };
    let own = key.common.key_algorithm.map(|own| own.to_string());
    by_kind && own.is_none_or(|own| own == format!("{algorithm:?}"))
}
