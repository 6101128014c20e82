//! Keys that verify signatures, and the choice of one for a token. [RFC 7517]

use super::algorithm::JwtAlgorithm;
use super::token_error::TokenError;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{DecodingKey, Header};
use serde::Deserialize;
use serde_json::Value;

/// Keys that are taken of one set at most.
const MAX_KEYS: usize = 100;
/// Shortest modulus of an RSA key.
const MIN_RSA_BYTES: usize = 256;
/// Longest modulus of an RSA key: verification takes time with its square.
const MAX_RSA_BYTES: usize = 1_024;

/// Keys that verify signatures: public ones of an issuer, or one secret.
#[derive(Clone, Debug)]
pub struct JwtKeys(Vec<VerifyingKey>);

#[derive(Clone, Debug)]
struct VerifyingKey {
    id: Option<String>,
    /// Algorithms that it is used with; never empty.
    algorithms: Vec<JwtAlgorithm>,
    key: DecodingKey,
}

/// The reason why a text has no usable keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not a JSON Web Key Set.
    #[error("not a JSON Web Key Set: `{{\"keys\": […]}}`")]
    NotAKeySet,
    /// Too many keys.
    #[error("a key set has at most {MAX_KEYS} keys")]
    TooManyKeys,
    /// No key verifies signatures.
    #[error(
        "no public key of RSA (2048 to 8192 bits), P-256, P-384 or Ed25519 for signatures is in it"
    )]
    NoUsableKey,
    /// A secret that could be found by trial.
    #[error("a secret has at least 32 bytes")]
    ShortSecret,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl JwtKeys {
    /// Reads a key set of at most 100 keys. Unparsable, encryption, short and symmetric keys are
    /// omitted: a secret is no part of a published set.
    ///
    /// # Errors
    /// [`KeyError`], if no key remains or it is not a key set.
    pub fn from_jwks(json: &[u8]) -> Result<Self, KeyError> {
        let document = serde_json::from_slice::<Document>(json);
        let Document { keys } = document.map_err(|_| KeyError::NotAKeySet)?;
        if MAX_KEYS < keys.len() {
            return Err(KeyError::TooManyKeys);
        }
        let keys = keys.into_iter();
        let keys = keys.filter_map(|key| VerifyingKey::new(&serde_json::from_value(key).ok()?));
        let keys: Vec<_> = keys.collect();
        if keys.is_empty() {
            return Err(KeyError::NoUsableKey);
        }
        Ok(Self(keys))
    }

    /// The key of HMAC signatures; one of less than 48 or 64 bytes is used for fewer algorithms.
    ///
    /// # Errors
    /// [`KeyError::ShortSecret`]
    pub fn from_secret(secret: &[u8]) -> Result<Self, KeyError> {
        let all = JwtAlgorithm::ALL.iter().copied();
        let fitting =
            all.filter(|own| own.is_symmetric() && own.min_secret_bytes() <= secret.len());
        let algorithms: Vec<_> = fitting.collect();
        if algorithms.is_empty() {
            return Err(KeyError::ShortSecret);
        }
        Ok(Self(vec![VerifyingKey {
            id: None,
            algorithms,
            key: DecodingKey::from_secret(secret),
        }]))
    }

    /// No keys: every token is refused.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Vec::new())
    }

    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if a key is used with `algorithm`.
    #[must_use]
    pub fn allows(&self, algorithm: JwtAlgorithm) -> bool {
        self.0.iter().any(|key| key.algorithms.contains(&algorithm))
    }

    /// The key for a token with `header`. Without `kid` exactly one key may fit; a key without an id fits only
    /// tokens without one, except the only key of a set.
    pub(super) fn find(
        &self,
        header: &Header,
        algorithm: JwtAlgorithm,
    ) -> Result<&DecodingKey, TokenError> {
        let is_single = self.0.len() == 1;
        let is_named = |key: &&VerifyingKey| match (&header.kid, &key.id) {
            (None, _) => true,
            (Some(wanted), Some(own)) => wanted == own,
            (Some(_), None) => is_single,
        };
        let named: Vec<_> = self.0.iter().filter(is_named).collect();
        if named.is_empty() {
            return Err(TokenError::UnknownKey);
        }
        let mut fitting = named
            .iter()
            .filter(|key| key.algorithms.contains(&algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(&key.key),
            (None, _) => Err(TokenError::Algorithm),
            (Some(_), Some(_)) => Err(TokenError::AmbiguousKey),
        }
    }
}

impl VerifyingKey {
    /// `None` for a key that does not verify signatures.
    fn new(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        let signs = common
            .public_key_use
            .as_ref()
            .is_none_or(|own| *own == PublicKeyUse::Signature);
        let operations = common.key_operations.as_ref();
        let verifies = operations.is_none_or(|own| own.contains(&KeyOperations::Verify));
        if !signs || !verifies {
            return None;
        }
        let own = common.key_algorithm.map(|own| own.to_string());
        let by_kind = algorithms(&jwk.algorithm).iter().copied();
        let allowed = by_kind.filter(|one| own.as_ref().is_none_or(|own| own == one.name()));
        let algorithms: Vec<_> = allowed.collect();
        let key = DecodingKey::from_jwk(jwk).ok()?;
        (!algorithms.is_empty()).then(|| Self {
            id: common.key_id.clone(),
            algorithms,
            key,
        })
    }
}

/// Algorithms of a type of key; empty for symmetric keys and for invalid lengths.
fn algorithms(parameters: &AlgorithmParameters) -> &'static [JwtAlgorithm] {
    use JwtAlgorithm as A;
    match parameters {
        AlgorithmParameters::RSA(rsa) => {
            let modulus = URL_SAFE_NO_PAD.decode(&rsa.n).unwrap_or_default();
            let length = modulus.iter().skip_while(|byte| **byte == 0).count();
            if (MIN_RSA_BYTES..=MAX_RSA_BYTES).contains(&length) {
                &[A::Rs256, A::Rs384, A::Rs512, A::Ps256, A::Ps384, A::Ps512]
            } else {
                &[]
            }
        }
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => &[A::Es256],
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => &[A::Es384],
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            &[A::EdDsa]
        }
        AlgorithmParameters::EllipticCurve(_)
        | AlgorithmParameters::OctetKeyPair(_)
        | AlgorithmParameters::OctetKey(_)
        | AlgorithmParameters::Other(_)
        | _ => &[],
    }
}
