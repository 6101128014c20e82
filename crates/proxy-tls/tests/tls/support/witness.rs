//! Client that accepts any certificate, restricts the signature schemes, and records the OCSP
//! response.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme, SupportedProtocolVersion,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub(crate) struct RecordingClient {
    schemes: Vec<SignatureScheme>,
    staple: OnceLock<Vec<u8>>,
}

impl RecordingClient {
    pub(crate) fn new(schemes: &[SignatureScheme]) -> Arc<Self> {
        Arc::new(Self {
            schemes: schemes.to_vec(),
            staple: OnceLock::new(),
        })
    }

    pub(crate) fn with_all_schemes() -> Arc<Self> {
        Self::new(
            &default_provider()
                .signature_verification_algorithms
                .supported_schemes(),
        )
    }

    pub(crate) fn config(
        self: &Arc<Self>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> ClientConfig {
        ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(self) as _)
            .with_no_client_auth()
    }

    pub(crate) fn staple(&self) -> Option<&[u8]> {
        self.staple.get().map(Vec::as_slice)
    }
}

impl ServerCertVerifier for RecordingClient {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.staple.set(ocsp_response.to_vec()).unwrap();
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
        self.schemes.clone()
    }
}
