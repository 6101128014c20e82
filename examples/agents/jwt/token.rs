//! The verification of one token.

use jsonwebtoken::errors::Error;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Map, Value};
use thiserror::Error;

/// Seconds by which clocks may differ.
const LEEWAY_SECONDS: u64 = 30;

/// Required claims of a token.
pub(crate) struct Expected(Validation);

impl Expected {
    /// Tokens are verified with one algorithm, regardless of their headers, and must have `exp`,
    /// `iss` and `aud`; `nbf` is checked if present.
    pub(crate) fn new(algorithm: Algorithm, issuer: &str, audience: &str) -> Self {
        let mut validation = Validation::new(algorithm);
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.validate_nbf = true;
        validation.leeway = LEEWAY_SECONDS;
        Self(validation)
    }
}

/// Reason to refuse a token, for the log.
#[derive(Debug, Error)]
pub(crate) enum Refused {
    #[error("the token names no known key")]
    Key,
    #[error("the token was refused: {0}")]
    Token(#[from] Error),
}

/// The claims of a token, if its signature, times, issuer and audience are right.
pub(crate) fn verify(
    token: &str,
    keys: &JwkSet,
    expected: &Expected,
) -> Result<Map<String, Value>, Refused> {
    let kid = decode_header(token)?.kid;
    let key = DecodingKey::from_jwk(key(keys, kid.as_deref()).ok_or(Refused::Key)?)?;
    Ok(decode(token, &key, &expected.0)?.claims)
}

/// The key with this id; without an id the only key.
fn key<'a>(keys: &'a JwkSet, kid: Option<&str>) -> Option<&'a Jwk> {
    match (kid, &*keys.keys) {
        (Some(kid), _) => keys.find(kid),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}
