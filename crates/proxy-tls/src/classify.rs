//! Classification of handshake errors.

use crate::client::listed::Untrusted;
use crate::client::pinned::PinMismatch;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, OtherError};
use std::io;

/// The class of a handshake error. The error's own `Display` has the details for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsFailure {
    /// The peer's certificate was rejected.
    #[error("certificate {0}")]
    Verify(VerifyFailure),
    /// The peer ended the handshake with an alert, for example because it requires a client
    /// certificate or rejects ours.
    #[error("peer sent alert {0:?}")]
    Alert(AlertDescription),
    /// The two sides have no version, cipher suite, group or protocol in common.
    #[error("nothing in common with the peer")]
    Incompatible,
    /// The peer sent something other than TLS, such as a plaintext server on that port.
    #[error("peer does not speak TLS")]
    NotTls,
    /// The peer violated the protocol.
    #[error("peer broke the protocol")]
    Protocol,
    /// An error of this side.
    #[error("failed on this side")]
    Local,
}

/// The reason why a certificate was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyFailure {
    /// It is valid for other names only.
    #[error("is not valid for the name")]
    WrongName,
    /// It has no chain to a trusted root.
    #[error("has an unknown issuer")]
    UnknownIssuer,
    /// It has expired.
    #[error("is expired")]
    Expired,
    /// It is not valid yet.
    #[error("is not valid yet")]
    NotYetValid,
    /// Its issuer revoked it.
    #[error("is revoked")]
    Revoked,
    /// It is valid for another use, such as a server's certificate sent by a client.
    #[error("is not meant for this use")]
    WrongPurpose,
    /// A signature is invalid.
    #[error("has a bad signature")]
    BadSignature,
    /// Its key is none of the pinned ones.
    #[error("has another key than the pinned ones")]
    KeyNotPinned,
    /// It is not X.509.
    #[error("is malformed")]
    Malformed,
    /// Anything else.
    #[error("is not acceptable")]
    Other,
}

/// The class of a handshake error. Only [`TlsFailure::Verify`] is about trust; every other class is
/// a failed handshake.
pub fn classify(error: &Error) -> TlsFailure {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what rustls may add is a local failure until it is sorted here"
    )]
    match error {
        Error::InvalidCertificate(_)
        | Error::InvalidCertRevocationList(_)
        | Error::NoCertificatesPresented
        | Error::UnsupportedNameType => TlsFailure::Verify(VerifyFailure::from(error)),
        Error::AlertReceived(alert) => TlsFailure::Alert(*alert),
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => TlsFailure::Incompatible,
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => TlsFailure::NotTls,
        Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerMisbehaved(_)
        | Error::PeerSentOversizedRecord
        | Error::DecryptError => TlsFailure::Protocol,
        _ => TlsFailure::Local,
    }
}

/// The class of an I/O error during a handshake; `None` if TLS did not cause it.
pub fn classify_io(error: &io::Error) -> Option<TlsFailure> {
    error.get_ref()?.downcast_ref::<Error>().map(classify)
}

/// The text of an I/O error during a handshake, for the log: its own, or ours where rustls would
/// print the names of its types.
pub fn io_error_text(error: &io::Error) -> String {
    let failed = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    match failed {
        Some(Error::InvalidCertificate(CertificateError::Other(OtherError(why)))) => {
            format!("invalid peer certificate: {why}")
        }
        Some(_) | None => error.to_string(),
    }
}

impl From<&Error> for VerifyFailure {
    fn from(error: &Error) -> Self {
        let Error::InvalidCertificate(error) = error else {
            return Self::Other;
        };
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "what rustls may add is `Other` until it is sorted here"
        )]
        match error {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::WrongName
            }
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::Other(OtherError(why)) => match why.downcast_ref() {
                Some(Untrusted::SelfSigned) => Self::UnknownIssuer,
                Some(Untrusted::Authority) => Self::WrongPurpose,
                None if why.is::<PinMismatch>() => Self::KeyNotPinned,
                None => Self::Other,
            },
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::NotYetValid
            }
            CertificateError::Revoked => Self::Revoked,
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                Self::WrongPurpose
            }
            CertificateError::BadSignature => Self::BadSignature,
            CertificateError::BadEncoding => Self::Malformed,
            _ => Self::Other,
        }
    }
}
