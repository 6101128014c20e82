//! Verification of an ID token (OpenID Connect Core, section 3.1.3.7).

use super::error::OidcError;
use super::key_set::KeySet;
use aws_lc_rs::{constant_time, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Map, Value};

/// Maximum tolerated difference between the clocks of provider and this service, in seconds.
const MAX_SKEW_SECS: i64 = 60;
/// Maximum age of a token, in seconds: a token for this sign-in is younger.
const MAX_AGE_SECS: i64 = 24 * 60 * 60;
const MAX_TOKEN_BYTES: usize = 64 * 1024;
/// Maximum length of `sub`: 255 ASCII characters (OpenID Connect Core, section 2).
const MAX_SUBJECT_BYTES: usize = 255;

/// Expected values of a token's claims.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedToken<'a> {
    /// Expected `iss`.
    pub issuer: &'a str,
    /// Expected `aud`.
    pub client_id: &'a str,
    /// Expected `nonce`.
    pub nonce: &'a str,
    /// Access token of the same response, which `at_hash` must match.
    pub access_token: &'a str,
}

/// A verified ID token.
#[derive(Clone, Debug, PartialEq)]
pub struct IdToken {
    /// Issuer, equal to the connection's.
    pub issuer: String,
    /// Identifier of the user at the provider, 1 to 255 bytes.
    pub subject: String,
    /// All claims.
    pub claims: Map<String, Value>,
}

impl IdToken {
    /// Time when the user authenticated at the provider (`auth_time`). Entra ID's optional claim
    /// may be a string.
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
/// The first violated rule. After [`OidcError::UnknownKey`], fetching the key set again may help.
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
    // jsonwebtoken 11 parses `crit`, but does not enforce it.
    if header.crit.is_some() {
        return Err(OidcError::Critical);
    }
    // Access and logout tokens of the same provider have types of their own (RFC 9068; RFC 8725,
    // section 3.11).
    let kind = header.typ.as_deref().unwrap_or("JWT");
    if !kind.eq_ignore_ascii_case("JWT") {
        return Err(OidcError::Claim("typ"));
    }
    let key = keys.find(&header)?;
    let key = DecodingKey::from_jwk(key).map_err(|_| OidcError::UnknownKey)?;
    let mut validation = Validation::new(header.alg);
    // Times and audience are checked below, by the given time.
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
    // Several audiences require `azp`, and `azp` must always name this client.
    if !is_ours && (azp.is_some() || audiences.len() != 1) {
        return Err(OidcError::Claim("azp"));
    }
    let nonce = text(claims, "nonce").unwrap_or_default();
    constant_time::verify_slices_are_equal(nonce.as_bytes(), expected.nonce.as_bytes())
        .map_err(|_| OidcError::Claim("nonce"))
}

/// Checks times; `exp` and `iat` are required. Fractions of seconds are permitted (RFC 7519,
/// section 2).
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

/// Compares `at_hash` with the left half of the access token's hash, by the token's algorithm
/// (section 3.1.3.6).
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
