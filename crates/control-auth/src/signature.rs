//! Ed25519 keys of an organization.

use crate::error::AuthError;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// A private key with its public half.
#[derive(Debug)]
pub struct SigningPair(Ed25519KeyPair);

/// A public key: 32 bytes in Base64-URL, the `x` of a JSON Web Key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(String);

impl SigningPair {
    /// The key pair of a seed of 32 random bytes.
    ///
    /// # Errors
    ///
    /// [`AuthError::Malformed`] if there are not 32 bytes.
    pub fn new(seed: &[u8]) -> Result<Self, AuthError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| AuthError::Malformed)?;
        Ok(Self(pair))
    }

    /// Public key of the pair, as nodes and the JWKS have it.
    pub fn public(&self) -> PublicKey {
        PublicKey(URL_SAFE_NO_PAD.encode(self.0.public_key()))
    }

    /// The signature of `message` in Base64-URL.
    pub fn sign(&self, message: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(self.0.sign(message))
    }

    pub(crate) fn pkcs8(&self) -> Result<Vec<u8>, AuthError> {
        let der = self.0.to_pkcs8v1().map_err(|_| AuthError::Malformed)?;
        Ok(der.as_ref().to_vec())
    }
}

impl PublicKey {
    /// A key from the database or a peer, not validated; [`PublicKey::verify`] does so.
    pub fn from_text(text: String) -> Self {
        Self(text)
    }

    /// Base64-URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks that `signature`, in Base64-URL, is of `message` by this key.
    ///
    /// # Errors
    ///
    /// [`AuthError::Malformed`] if key or signature is not Base64-URL, else
    /// [`AuthError::Signature`].
    pub fn verify(&self, message: &[u8], signature: &str) -> Result<(), AuthError> {
        UnparsedPublicKey::new(&ED25519, self.bytes()?)
            .verify(message, &decode(signature)?)
            .map_err(|_| AuthError::Signature)
    }

    pub(crate) fn bytes(&self) -> Result<Vec<u8>, AuthError> {
        decode(&self.0)
    }
}

fn decode(text: &str) -> Result<Vec<u8>, AuthError> {
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| AuthError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_message_by_one_key() {
        let (own, other) = (
            SigningPair::new(&[1; 32]).unwrap(),
            SigningPair::new(&[2; 32]).unwrap(),
        );
        let signature = own.sign(b"order");
        assert_eq!(own.public().verify(b"order", &signature), Ok(()));
        for (key, message) in [(own.public(), b"other"), (other.public(), b"order")] {
            assert_eq!(key.verify(message, &signature), Err(AuthError::Signature));
        }
        assert_eq!(
            own.public().verify(b"order", "?"),
            Err(AuthError::Malformed)
        );
    }
}
