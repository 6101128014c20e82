//! Verification of an ID token (OpenID Connect Core, section 3.1.3.7).

use super::error::OidcError;
use super::key_set::KeySet;
use aws_lc_rs::{constant_time, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Map, Value};

/// Largest difference of the two clocks, in seconds.
const MAX_SKEW_SECS: i64 = 60;
/// Longest time since a token was issued, in seconds: one that answers this sign-in is younger.
const MAX_AGE_SECS: i64 = 24 * 60 * 60;
const MAX_TOKEN_BYTES: usize = 64 * 1024;
/// OpenID Connect Core, section 2: a `sub` has at most 255 ASCII characters.
const MAX_SUBJECT_BYTES: usize = 255;

/// The values that a token must have.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedToken<'a> {
    /// `iss`
    pub issuer: &'a str,
    /// `aud`
    pub client_id: &'a str,
    /// `nonce`
    pub nonce: &'a str,
    /// The access token of the same response, to compare with `at_hash`.
    pub access_token: &'a str,
}

/// A verified ID token.
#[derive(Clone, Debug, PartialEq)]
pub struct IdToken {
    /// `iss`, equal to the issuer of the connection.
    pub issuer: String,
    /// The user at the provider, 1 to 255 bytes.
    pub subject: String,
    /// All claims.
    pub claims: Map<String, Value>,
}

impl IdToken {
    /// `auth_time`, when the user proved its identity to the provider; Entra ID's optional claim may be a text.
    pub fn authenticated_at(&self) -> Option<Timestamp> {
        let number = seconds(&self.claims, "auth_time").ok().flatten();
        let second = number.or_else(|| text(&self.claims, "auth_time")?.parse().ok())?;
        Timestamp::from_second(second).ok()
    }
}

/// Verifies an ID token against the provider's keys.
///
/// # Errors
///
/// The first rule that the token breaks. [`OidcError::UnknownKey`] may be cured by fetching the key set again.
pub fn verify_id_token(
    token: &str,
    keys: &KeySet,
    expected: &ExpectedToken<'_>,
    now: Timestamp,
) -> Result<IdToken, OidcError> {
    if token.split('.').count() == 5 {
        return Err(OidcError::Encrypted);
    }
    if MAX_TOKEN_BYTES < token.len() {
        return Err(OidcError::Token);
    }
    let header = decode_header(token).map_err(|_| OidcError::Token)?;
    // jsonwebtoken 11 reads `crit` and does not act on it.
    if header.crit.is_some() {
        return Err(OidcError::Critical);
    }
    // Access tokens and logout tokens of the same provider name their type (RFC 9068, RFC 8725 section 3.11).
    let kind = header.typ.as_deref().unwrap_or("JWT");
    if !kind.eq_ignore_ascii_case("JWT") {
        return Err(OidcError::Claim("typ"));
    }
    let key = keys.find(&header)?;
    let key = DecodingKey::from_jwk(key).map_err(|_| OidcError::UnknownKey)?;
    let mut validation = Validation::new(header.alg);
    // Times and audience are compared below, with the given time.
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    let decoded = decode::<Map<String, Value>>(token, &key, &validation);
    let claims = decoded.map_err(|_| OidcError::Signature)?.claims;
    check_parties(&claims, expected)?;
    check_times(&claims, now.as_second())?;
    check_access_token(&claims, header.alg, expected.access_token)?;
    let subject = text(&claims, "sub").filter(|sub| {
        (1..=MAX_SUBJECT_BYTES).contains(&sub.len()) && !sub.chars().any(char::is_control)
    });
    let subject = subject.ok_or(OidcError::Claim("sub"))?.to_owned();
    Ok(IdToken {
        issuer: expected.issuer.to_owned(),
        subject,
        claims,
    })
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name)?.as_str()
}

fn check_parties(
    claims: &Map<String, Value>,
    expected: &ExpectedToken<'_>,
) -> Result<(), OidcError> {
    if text(claims, "iss") != Some(expected.issuer) {
        return Err(OidcError::Claim("iss"));
    }
    let audiences: &[Value] = match claims.get("aud") {
        Some(Value::Array(all)) => all,
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    if !audiences.iter().any(|own| own == expected.client_id) {
        return Err(OidcError::Claim("aud"));
    }
    let azp = claims.get("azp");
    let is_ours = azp.is_some_and(|azp| azp == expected.client_id);
    // Several audiences require `azp`, and if present it must name this client.
    if !is_ours && (azp.is_some() || audiences.len() != 1) {
        return Err(OidcError::Claim("azp"));
    }
    let nonce = text(claims, "nonce").unwrap_or_default();
    constant_time::verify_slices_are_equal(nonce.as_bytes(), expected.nonce.as_bytes())
        .map_err(|_| OidcError::Claim("nonce"))
}

/// `exp` and `iat` must be there. A number with a fraction is a time too (RFC 7519, section 2).
fn check_times(claims: &Map<String, Value>, now: i64) -> Result<(), OidcError> {
    let exp = seconds(claims, "exp")?.ok_or(OidcError::Claim("exp"))?;
    let iat = seconds(claims, "iat")?.ok_or(OidcError::Claim("iat"))?;
    let nbf = seconds(claims, "nbf")?;
    let is_old = iat.saturating_add(MAX_AGE_SECS) <= now;
    if is_old || exp.saturating_add(MAX_SKEW_SECS) <= now {
        return Err(OidcError::Expired);
    }
    let latest = now.saturating_add(MAX_SKEW_SECS);
    if latest < iat || nbf.is_some_and(|nbf| latest < nbf) {
        return Err(OidcError::Early);
    }
    Ok(())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a fraction of a second is cut off, and a float beyond the range saturates"
)]
fn seconds(claims: &Map<String, Value>, name: &'static str) -> Result<Option<i64>, OidcError> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let whole = value.as_i64();
    let seconds = whole.or_else(|| value.as_f64().map(|float| float as i64));
    seconds.map(Some).ok_or(OidcError::Claim(name))
}

/// Section 3.1.3.6: the left half of the hash that the token's algorithm uses.
fn check_access_token(
    claims: &Map<String, Value>,
    algorithm: Algorithm,
    access_token: &str,
) -> Result<(), OidcError> {
    use Algorithm as A;
    let Some(named) = claims.get("at_hash") else {
        return Ok(());
    };
    let hash = match algorithm {
        A::RS256 | A::PS256 | A::ES256 => &digest::SHA256,
        A::RS384 | A::PS384 | A::ES384 => &digest::SHA384,
        A::RS512 | A::PS512 | A::EdDSA => &digest::SHA512,
        A::HS256 | A::HS384 | A::HS512 | _ => return Err(OidcError::Claim("at_hash")),
    };
    let whole = digest::digest(hash, access_token.as_bytes());
    let whole = whole.as_ref();
    let half = whole.get(..whole.len() / 2).unwrap_or_default();
    let is_it = named.as_str() == Some(&URL_SAFE_NO_PAD.encode(half));
    is_it.then_some(()).ok_or(OidcError::Claim("at_hash"))
}
