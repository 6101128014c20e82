//! Keys, signing requests, and certificates for TLS-ALPN-01.

use crate::error::AcmeError;
use proxy_model::AcmeKeyType;
use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, PublicKeyData,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

/// A key with its signing request.
pub(crate) struct SigningRequest {
    /// Private key, PKCS#8 in PEM.
    pub(crate) key_pem: Zeroizing<String>,
    pub(crate) der: Vec<u8>,
    /// `SubjectPublicKeyInfo` of the key as DER. [RFC 5280 §4.1.2.7]
    pub(crate) public_key: Vec<u8>,
}

/// Generates a key and a signing request for `hosts`. Blocking: RSA takes up to a second.
pub(crate) fn signing_request(
    hosts: &[String],
    key_type: AcmeKeyType,
) -> Result<SigningRequest, AcmeError> {
    let failed = |error: rcgen::Error| AcmeError::Key(error.to_string());
    let algorithm = match key_type {
        AcmeKeyType::EcdsaP256 => &PKCS_ECDSA_P256_SHA256,
        AcmeKeyType::EcdsaP384 => &PKCS_ECDSA_P384_SHA384,
        AcmeKeyType::Rsa2048 => &PKCS_RSA_SHA256,
    };
    let key = KeyPair::generate_for(algorithm).map_err(failed)?;
    request_with(hosts, &key)
}

/// Signing request for `hosts` with an existing key, PKCS#8 in PEM.
pub(crate) fn signing_request_again(
    hosts: &[String],
    key_pem: &str,
) -> Result<SigningRequest, AcmeError> {
    let key = KeyPair::from_pem(key_pem);
    let key = key.map_err(|error| AcmeError::Key(error.to_string()))?;
    request_with(hosts, &key)
}

fn request_with(hosts: &[String], key: &KeyPair) -> Result<SigningRequest, AcmeError> {
    let failed = |error: rcgen::Error| AcmeError::Key(error.to_string());
    let mut params = CertificateParams::new(hosts).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(key).map_err(failed)?;
    Ok(SigningRequest {
        key_pem: Zeroizing::new(key.serialize_pem()),
        der: request.der().to_vec(),
        public_key: key.subject_public_key_info(),
    })
}

/// Certificate and key that prove control over `host` by TLS-ALPN-01. `digest` is the key
/// authorization's. [RFC 8737 §3]
pub(crate) fn challenge_certificate(
    host: &str,
    digest: &[u8; 32],
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), AcmeError> {
    let failed = |error: rcgen::Error| AcmeError::Key(error.to_string());
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let mut params = CertificateParams::new([host.to_owned()]).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok((certificate.der().clone(), key.into()))
}
