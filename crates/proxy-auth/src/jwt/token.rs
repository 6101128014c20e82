//! Verification of one token.

use super::algorithm::JwtAlgorithm;
use super::claims::TokenClaims;
use super::key_set::JwtKeys;
use super::token_error::TokenError;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};

/// Rules that a token must keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRules {
    /// `iss`, compared byte by byte.
    pub issuer: String,
    /// `aud` must be one of them, or a list with one of them.
    pub audiences: Vec<String>,
    /// Allowed algorithms; empty for the algorithms of the keys.
    pub algorithms: Vec<JwtAlgorithm>,
    /// Largest difference between the clocks of issuer and proxy, in seconds.
    pub clock_skew_secs: i64,
    /// Longest token, in bytes.
    pub max_bytes: usize,
}

impl TokenRules {
    /// Verifies `token` at `now`, in seconds since 1970.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn verify(
        &self,
        token: &[u8],
        keys: &JwtKeys,
        now: i64,
    ) -> Result<TokenClaims, TokenError> {
        let Self {
            issuer,
            audiences,
            algorithms,
            clock_skew_secs,
            max_bytes,
        } = self;
        if *max_bytes < token.len() {
            return Err(TokenError::TooLong);
        }
        // Five parts are an encrypted token.
        if token.split(|byte| *byte == b'.').count() != 3 {
            return Err(TokenError::Malformed);
        }
        let header = decode_header(token).map_err(|_| TokenError::Malformed)?;
        // The library reads `crit` and does not act on it.
        if header.crit.is_some() {
            return Err(TokenError::Critical);
        }
        let algorithm = JwtAlgorithm::from_theirs(header.alg).ok_or(TokenError::Algorithm)?;
        if !algorithms.is_empty() && !algorithms.contains(&algorithm) {
            return Err(TokenError::Algorithm);
        }
        let key = keys.find(&header, algorithm)?;
        let mut validation = Validation::new(header.alg);
        // Claims are compared below, with the given time.
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let decoded = decode::<Map<String, Value>>(token, key, &validation);
        let claims = decoded.map_err(|_| TokenError::Signature)?.claims;
        if claims.get("iss").and_then(Value::as_str) != Some(issuer) {
            return Err(TokenError::Issuer);
        }
        if !is_for(&claims, audiences) {
            return Err(TokenError::Audience);
        }
        check_times(&claims, now, *clock_skew_secs)?;
        Ok(TokenClaims::new(claims))
    }
}

fn is_for(claims: &Map<String, Value>, audiences: &[String]) -> bool {
    let is_ours = |own: &Value| audiences.iter().any(|wanted| own == wanted.as_str());
    match claims.get("aud") {
        Some(Value::Array(all)) => all.iter().any(is_ours),
        Some(one) => is_ours(one),
        None => false,
    }
}

/// `exp` is mandatory.
fn check_times(claims: &Map<String, Value>, now: i64, skew: i64) -> Result<(), TokenError> {
    let exp = seconds(claims, "exp")?.ok_or(TokenError::Time)?;
    let nbf = seconds(claims, "nbf")?;
    if exp.saturating_add(skew) <= now {
        return Err(TokenError::Expired);
    }
    let latest = now.saturating_add(skew);
    if nbf.is_some_and(|nbf| latest < nbf) {
        return Err(TokenError::NotYetValid);
    }
    Ok(())
}

/// A number with a fraction is a time too. [RFC 7519 §2]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a fraction of a second is cut off, and a float beyond the range saturates"
)]
fn seconds(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, TokenError> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let whole = value.as_i64();
    let seconds = whole.or_else(|| value.as_f64().map(|float| float as i64));
    seconds.map(Some).ok_or(TokenError::Time)
}
