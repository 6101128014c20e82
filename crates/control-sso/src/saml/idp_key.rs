//! Public keys of identity providers, from their certificates.

use super::error::SamlError;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, UnparsedPublicKey,
    VerificationAlgorithm,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;

const ARMOUR: &str = "-----";
/// Maximum number of certificates: the current one, the next one, and a reserve.
const MAX_CERTIFICATES: usize = 8;
const MIN_RSA_BITS: usize = 2048;

/// A public key that may sign responses. The validity of its certificate is displayed but not
/// enforced: the administrator pins the key, and the certificate only contains it.
#[derive(Clone, Debug)]
pub struct IdpKey {
    kind: KeyKind,
    bytes: Vec<u8>,
    /// End of the certificate's validity.
    pub not_after: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyKind {
    Rsa,
    P256,
    P384,
}

impl KeyKind {
    /// Signature method of the key; `None` if the key is too weak.
    fn new(key: &PublicKey<'_>) -> Option<Self> {
        if let PublicKey::RSA(key) = key {
            return (MIN_RSA_BITS <= key.key_size()).then_some(Self::Rsa);
        }
        let PublicKey::EC(point) = key else {
            return None;
        };
        match point.key_size() {
            256 => Some(Self::P256),
            384 => Some(Self::P384),
            _ => None,
        }
    }
}

impl IdpKey {
    /// Keys of 1 to 8 certificates in PEM, or of one in bare Base64.
    ///
    /// # Errors
    ///
    /// [`SamlError::Certificate`] if there is none, or one of them is unusable.
    pub fn from_pem(text: &str) -> Result<Vec<Self>, SamlError> {
        let mut blocks: Vec<String> = Vec::new();
        let mut is_open = !text.contains(ARMOUR);
        for line in text.lines().map(str::trim) {
            if line.starts_with("-----BEGIN CERTIFICATE-----") && !is_open {
                blocks.push(String::new());
                is_open = true;
            } else if line.starts_with("-----END CERTIFICATE-----") && is_open {
                is_open = false;
            } else if line.starts_with(ARMOUR) {
                return Err(SamlError::Certificate);
            } else if is_open {
                if blocks.is_empty() {
                    blocks.push(String::new());
                }
                if let Some(block) = blocks.last_mut() {
                    block.push_str(line);
                }
            }
        }
        if blocks.is_empty() || MAX_CERTIFICATES < blocks.len() {
            return Err(SamlError::Certificate);
        }
        blocks
            .iter()
            .map(|block| Self::from_base64(block))
            .collect()
    }

    /// Key of a certificate, given as DER in Base64 as in metadata.
    ///
    /// # Errors
    ///
    /// [`SamlError::Certificate`] if the bytes are no X.509 certificate, or the key is unsupported.
    pub fn from_base64(text: &str) -> Result<Self, SamlError> {
        let body: String = text.split_ascii_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| SamlError::Certificate)?;
        let parsed = X509Certificate::from_der(&der);
        let (rest, certificate) = parsed.map_err(|_| SamlError::Certificate)?;
        if !rest.is_empty() {
            return Err(SamlError::Certificate);
        }
        let spki = certificate.public_key();
        let public = spki.parsed().map_err(|_| SamlError::Certificate)?;
        let kind = KeyKind::new(&public).ok_or(SamlError::Certificate)?;
        let end = certificate.validity().not_after.timestamp();
        Ok(Self {
            kind,
            bytes: spki.subject_public_key.data.to_vec(),
            not_after: Timestamp::from_second(end).unwrap_or(Timestamp::MAX),
        })
    }

    /// Returns true if `signature` of `message` verifies by the algorithm with this URI.
    pub(super) fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        let Some(method) = self.method(algorithm) else {
            return false;
        };
        let key = UnparsedPublicKey::new(method, &self.bytes);
        key.verify(message, signature).is_ok()
    }

    /// Verification algorithm for a URI; `None` unless it fits the key. The key's type decides and
    /// not the document: an RSA key never verifies another type of signature.
    fn method(&self, algorithm: &str) -> Option<&'static dyn VerificationAlgorithm> {
        let name = algorithm.strip_prefix("http://www.w3.org/2001/04/xmldsig-more#")?;
        match (self.kind, name) {
            (KeyKind::Rsa, "rsa-sha256") => Some(&RSA_PKCS1_2048_8192_SHA256),
            (KeyKind::Rsa, "rsa-sha384") => Some(&RSA_PKCS1_2048_8192_SHA384),
            (KeyKind::Rsa, "rsa-sha512") => Some(&RSA_PKCS1_2048_8192_SHA512),
            (KeyKind::P256, "ecdsa-sha256") => Some(&ECDSA_P256_SHA256_FIXED),
            (KeyKind::P384, "ecdsa-sha384") => Some(&ECDSA_P384_SHA384_FIXED),
            _ => None,
        }
    }
}
