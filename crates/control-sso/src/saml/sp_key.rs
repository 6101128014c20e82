//! The service provider's own key, which signs requests.

use super::error::SamlError;
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_RSA_SHA256};
use rustls_pki_types::PrivatePkcs8KeyDer;
use zeroize::Zeroizing;

/// An RSA key of 2048 bits: all identity providers verify RSA, but not all ECDSA.
#[derive(Debug)]
pub struct SpKey(RsaKeyPair);

impl SpKey {
    /// Generates a key; returns it with its private half as PKCS#8, to be sealed.
    ///
    /// # Errors
    ///
    /// [`SamlError::OwnKey`] if the operating system's random generator fails.
    pub fn generate() -> Result<(Self, Zeroizing<Vec<u8>>), SamlError> {
        let key = RsaKeyPair::generate(KeySize::Rsa2048).map_err(|_| SamlError::OwnKey)?;
        let der = key.as_der().map_err(|_| SamlError::OwnKey)?;
        let der = Zeroizing::new(der.as_ref().to_vec());
        Ok((Self(key), der))
    }

    /// Parses a key from PKCS#8.
    ///
    /// # Errors
    ///
    /// [`SamlError::OwnKey`] if the bytes are not an RSA key.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, SamlError> {
        let key = RsaKeyPair::from_pkcs8(der).map_err(|_| SamlError::OwnKey)?;
        Ok(Self(key))
    }

    /// Self-signed certificate of the key for metadata, as DER in Base64. Identity providers use
    /// only the key in it.
    ///
    /// # Errors
    ///
    /// [`SamlError::OwnKey`] if the bytes are not an RSA key.
    pub fn certificate(der: &[u8], name: &str) -> Result<String, SamlError> {
        let key =
            KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(der), &PKCS_RSA_SHA256);
        let key = key.map_err(|_| SamlError::OwnKey)?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).map_err(|_| SamlError::OwnKey)?;
        Ok(STANDARD.encode(certificate.der()))
    }

    /// RSA-SHA256 signature of `message`, in Base64.
    pub(super) fn sign(&self, message: &[u8]) -> Result<String, SamlError> {
        let mut signature = vec![0; self.0.public_modulus_len()];
        let random = SystemRandom::new();
        self.0
            .sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
            .map_err(|_| SamlError::OwnKey)?;
        Ok(STANDARD.encode(signature))
    }
}
