//! A node's token: a JWT signed with Ed25519.
//!
//! The library verifies the signature. This module refuses inputs that the library accepts: unknown
//! or repeated fields, other algorithms, non-canonical bytes, impossible times.

use crate::error::AuthError;
use crate::signature::{PublicKey, SigningPair};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use control_wire::{NodeId, OrgId, ProjectId, SigningKeyId};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Lifetime of a token: 12 hours.
pub const TOKEN_LIFETIME: SignedDuration = SignedDuration::from_hours(12);
/// Clocks of replicas may differ by this much.
const MAX_SKEW: SignedDuration = SignedDuration::from_secs(60);
/// Ours have about 550.
const MAX_TOKEN_BYTES: usize = 1024;

/// Claims of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// Node that the token was issued to.
    pub sub: NodeId,
    /// Project of the node at the time of issue.
    pub prj: ProjectId,
    /// Organization of the node at the time of issue.
    pub org: OrgId,
    /// The key that signed; also in the header.
    pub kid: SigningKeyId,
    /// Expiry of the token, in seconds since 1970.
    pub exp: i64,
}

/// The only header that is accepted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrictHeader {
    typ: String,
    alg: String,
    kid: SigningKeyId,
}

/// A token of the right form, with an unverified signature.
#[derive(Clone)]
pub struct UnverifiedToken<'a> {
    text: &'a str,
    claims: Claims,
}

impl Claims {
    /// The token in its compact form.
    ///
    /// # Errors
    ///
    /// [`AuthError::Malformed`] if the pair cannot be exported.
    pub fn sign(&self, pair: &SigningPair) -> Result<String, AuthError> {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.kid.to_string());
        let encoding = EncodingKey::from_ed_der(&pair.pkcs8()?);
        encode(&header, self, &encoding).map_err(|_| AuthError::Malformed)
    }

    /// Time of issue, in seconds since 1970.
    pub fn issued_at(&self) -> i64 {
        self.exp.saturating_sub(TOKEN_LIFETIME.as_secs())
    }
}

impl std::fmt::Debug for UnverifiedToken<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UnverifiedToken(…, {:?})", self.claims)
    }
}

impl<'a> UnverifiedToken<'a> {
    /// Returns true if a bearer's text has the form of a token: no other credential contains a dot.
    pub fn has_token_shape(text: &str) -> bool {
        text.contains('.')
    }

    /// Reads the form of a token.
    ///
    /// # Errors
    ///
    /// [`AuthError::Malformed`] for everything that [`Claims::sign`] does not write.
    pub fn parse(text: &'a str) -> Result<Self, AuthError> {
        if MAX_TOKEN_BYTES < text.len() {
            return Err(AuthError::Malformed);
        }
        let parts: Vec<&str> = text.split('.').collect();
        let [header, claims, signature] = parts[..] else {
            return Err(AuthError::Malformed);
        };
        let StrictHeader { typ, alg, kid } = read(header)?;
        let claims: Claims = read(claims)?;
        let signature = URL_SAFE_NO_PAD.decode(signature);
        let whole = signature.is_ok_and(|bytes| bytes.len() == 64);
        if !whole || typ != "JWT" || alg != "EdDSA" || kid != claims.kid {
            return Err(AuthError::Malformed);
        }
        Ok(Self { text, claims })
    }

    /// The claims, unverified: call [`UnverifiedToken::verify`] before you trust them.
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The claims, if `key` signed the token and it is valid at `now`.
    ///
    /// # Errors
    ///
    /// [`AuthError::Signature`] for another key; [`AuthError::Expired`] if the token has ended, or
    /// ends later than any token that could have been issued by now.
    pub fn verify(self, key: &PublicKey, now: Timestamp) -> Result<Claims, AuthError> {
        let mut validation = Validation::new(Algorithm::EdDSA);
        // The library would read the clock; time is an argument here.
        validation.validate_exp = false;
        validation.required_spec_claims.clear();
        let decoding = DecodingKey::from_ed_der(&key.bytes()?);
        let claims = decode::<Claims>(self.text, &decoding, &validation)
            .map_err(|_| AuthError::Signature)?
            .claims;
        let latest = (now + TOKEN_LIFETIME + MAX_SKEW).as_second();
        if claims.exp <= now.as_second() || latest < claims.exp {
            return Err(AuthError::Expired);
        }
        Ok(claims)
    }
}

/// Canonical Base64-URL without padding, and JSON without unknown or repeated fields.
fn read<T: DeserializeOwned>(part: &str) -> Result<T, AuthError> {
    let bytes = URL_SAFE_NO_PAD.decode(part);
    let bytes = bytes.map_err(|_| AuthError::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| AuthError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(start: Timestamp) -> Claims {
        Claims {
            sub: NodeId::new(start, [1; 10]),
            prj: ProjectId::new(start, [2; 10]),
            org: OrgId::new(start, [3; 10]),
            kid: SigningKeyId::new(start, [4; 10]),
            exp: (start + TOKEN_LIFETIME).as_second(),
        }
    }

    #[test]
    fn a_token_is_valid_for_twelve_hours() {
        let start = Timestamp::from_second(1_000_000).unwrap();
        let (claims, pair) = (claims(start), SigningPair::new(&[1; 32]).unwrap());
        let token = claims.sign(&pair).unwrap();
        let verify = |key: &SigningPair, hours| {
            let now = start + SignedDuration::from_hours(hours);
            UnverifiedToken::parse(&token)
                .unwrap()
                .verify(&key.public(), now)
        };
        assert_eq!(verify(&pair, 0), Ok(claims.clone()));
        assert_eq!(verify(&pair, 11), Ok(claims.clone()));
        assert_eq!(verify(&pair, 12), Err(AuthError::Expired));
        assert_eq!(verify(&pair, -1), Err(AuthError::Expired), "not issued yet");
        assert_eq!(claims.issued_at(), 1_000_000);
        let other = SigningPair::new(&[2; 32]).unwrap();
        assert_eq!(verify(&other, 0), Err(AuthError::Signature));
    }

    #[test]
    fn any_other_form_is_malformed() {
        let start = Timestamp::from_second(1_000_000).unwrap();
        let claims = claims(start);
        let kid = claims.kid;
        let good_header = format!("{{\"typ\":\"JWT\",\"alg\":\"EdDSA\",\"kid\":\"{kid}\"}}");
        let good_claims = serde_json::to_string(&claims).unwrap();
        let token = |header: &str, claims: &str| {
            let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
            let signature = URL_SAFE_NO_PAD.encode([0; 64]);
            format!("{}.{}.{signature}", part(header), part(claims))
        };
        let malformed = |text: &str| UnverifiedToken::parse(text).is_err();
        assert!(!malformed(&token(&good_header, &good_claims)));
        for header in [
            good_header.replace("EdDSA", "none"),
            good_header.replace("EdDSA", "HS256"),
            good_header.replace("EdDSA", "eddsa"),
            good_header.replace("JWT", "at+jwt"),
            good_header.replace("\"typ\":\"JWT\",", ""),
            good_header.replace(&kid.to_string(), &claims.sub.to_string()),
            good_header.replace("{\"typ\"", "{\"crit\":[],\"typ\""),
            good_header.replace("{\"typ\"", "{\"jwk\":{},\"typ\""),
            good_header.replace("{\"typ\"", "{\"alg\":\"none\",\"typ\""),
        ] {
            assert!(malformed(&token(&header, &good_claims)), "{header}");
        }
        for claims in [
            good_claims.replace("{\"sub\"", "{\"exp\":9999999999,\"sub\""),
            good_claims.replace("{\"sub\"", "{\"nbf\":0,\"sub\""),
            good_claims.replace("\"exp\":", "\"exp\":1e3,\"x\":"),
            good_claims.replace("1043200", "\"1043200\""),
            format!("{good_claims} 1"),
            "{}".to_owned(),
            "[]".to_owned(),
        ] {
            assert!(malformed(&token(&good_header, &claims)), "{claims}");
        }
        let good = token(&good_header, &good_claims);
        for text in [
            format!("{good}="),
            format!("{good}."),
            good.replace('.', ".="),
            format!(" {good}"),
            good.rsplit_once('.').unwrap().0.to_owned(),
            format!("{}.", good.rsplit_once('.').unwrap().0),
            format!("{good}AAAA"),
            "a.".repeat(100_000),
            ".".repeat(3),
            String::new(),
        ] {
            assert!(malformed(&text), "{text}");
        }
    }
}
