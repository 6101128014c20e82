//! OCSP responses for tests, and a client that records which one it gets.

use std::sync::{Arc, OnceLock};
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

/// Trusts every server, and records the response for the first certificate.
#[derive(Debug, Default)]
pub(crate) struct Staples {
    first: OnceLock<Vec<u8>>,
}

impl Staples {
    /// A client that records them here.
    pub(crate) fn client(self: &Arc<Self>) -> ClientConfig {
        ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(self) as _)
            .with_no_client_auth()
    }

    /// The first response; empty without one.
    pub(crate) fn first(&self) -> Vec<u8> {
        self.first.get().unwrap().clone()
    }
}

impl ServerCertVerifier for Staples {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.first.get_or_init(|| ocsp_response.to_vec());
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = default_provider().signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// A response with the status good for the certificate with this number, valid until the given
/// year. Its signature is invalid: only clients verify it. [RFC 6960 §4.2.1]
pub(crate) fn ocsp_response(serial: u8, until: u16) -> Vec<u8> {
    let until = format!("{until}0101000000Z");
    let oid = der(6, &[&[0x2b]]);
    let algorithm = der(0x30, &[&oid]);
    let hash = der(4, &[&[1; 20]]);
    let id = der(0x30, &[&algorithm, &hash, &hash, &der(2, &[&[serial]])]);
    let time = der(0x18, &[until.as_bytes()]);
    let single = der(0x30, &[&id, &der(0x80, &[]), &time, &der(0xa0, &[&time])]);
    let responder = der(0xa2, &[&hash]);
    let data = der(0x30, &[&responder, &time, &der(0x30, &[&single])]);
    let basic = der(0x30, &[&data, &algorithm, &der(3, &[&[0]])]);
    let typed = der(0x30, &[&oid, &der(4, &[&basic])]);
    der(0x30, &[&der(0x0a, &[&[0]]), &der(0xa0, &[&typed])])
}

fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u8::try_from(content.len()).unwrap();
    let mut element = match length {
        0..128 => vec![tag, length],
        128.. => vec![tag, 0x81, length],
    };
    element.extend(content);
    element
}
