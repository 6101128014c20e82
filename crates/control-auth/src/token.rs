//! A node's token: a JWT signed with Ed25519.

use crate::error::AuthError;
use crate::signature::{PublicKey, SigningPair};
use control_wire::{NodeId, OrgId, ProjectId, SigningKeyId};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode,
};
use serde::{Deserialize, Serialize};

/// How long a token is valid: 12 hours.
pub const TOKEN_LIFETIME: SignedDuration = SignedDuration::from_hours(12);

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The node.
    pub sub: NodeId,
    /// Its project.
    pub prj: ProjectId,
    /// Its organization.
    pub org: OrgId,
    /// The key that signed; also in the header.
    pub kid: SigningKeyId,
    /// When the token ends, in seconds since 1970.
    pub exp: i64,
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

    /// What `token` says, if `key` signed it and it has not ended at `now`.
    ///
    /// # Errors
    ///
    /// [`AuthError::Signature`] for any other algorithm, key or form; [`AuthError::Expired`].
    pub fn verify(token: &str, key: &PublicKey, now: Timestamp) -> Result<Self, AuthError> {
        let mut validation = Validation::new(Algorithm::EdDSA);
        // The library would read the clock; time is an argument here.
        validation.validate_exp = false;
        validation.required_spec_claims.clear();
        let decoding = DecodingKey::from_ed_der(&key.bytes()?);
        let claims = decode::<Self>(token, &decoding, &validation)
            .map_err(|_| AuthError::Signature)?
            .claims;
        if claims.exp <= now.as_second() {
            return Err(AuthError::Expired);
        }
        Ok(claims)
    }
}

/// The key that a token claims to be signed with; to be believed only after [`Claims::verify`].
pub fn kid_of(token: &str) -> Option<SigningKeyId> {
    decode_header(token).ok()?.kid?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_after_twelve_hours() {
        let start = Timestamp::from_second(1_000_000).unwrap();
        let claims = Claims {
            sub: NodeId::new(start, [1; 10]),
            prj: ProjectId::new(start, [2; 10]),
            org: OrgId::new(start, [3; 10]),
            kid: SigningKeyId::new(start, [4; 10]),
            exp: (start + TOKEN_LIFETIME).as_second(),
        };
        let pair = SigningPair::new(&[1; 32]).unwrap();
        let token = claims.sign(&pair).unwrap();
        assert_eq!(kid_of(&token), Some(claims.kid));

        let verify = |key: &SigningPair, hours| {
            let now = start + SignedDuration::from_hours(hours);
            Claims::verify(&token, &key.public(), now)
        };
        assert_eq!(verify(&pair, 11), Ok(claims.clone()));
        assert_eq!(verify(&pair, 12), Err(AuthError::Expired));
        let other = SigningPair::new(&[2; 32]).unwrap();
        assert_eq!(verify(&other, 0), Err(AuthError::Signature));
    }
}
