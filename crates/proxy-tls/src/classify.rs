//! Classification of handshake errors.

use crate::client::listed::Untrusted;
use crate::client::pinned::PinMismatch;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, OtherError};
use std::io;

/// Class of a handshake error. The `Display` of the original error has the details for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsFailure {
    /// The peer's certificate was rejected.
    #[error("certificate {0}")]
    Verify(VerifyFailure),
    /// The peer ended the handshake with an alert, for example because it requires a client
    /// certificate or rejects this side's.
    #[error("peer sent alert {0:?}")]
    Alert(AlertDescription),
    /// The two sides support no common version, cipher suite, group or protocol.
    #[error("nothing in common with the peer")]
    Incompatible,
    /// The peer sent something other than TLS, for example plaintext.
    #[error("peer does not speak TLS")]
    NotTls,
    /// The peer violated the protocol.
    #[error("peer broke the protocol")]
    Protocol,
    /// An error on this side.
    #[error("failed on this side")]
    Local,
}

/// Reason why a certificate was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyFailure {
    /// The certificate is for other names.
    #[error("is not valid for the name")]
    WrongName,
    /// The chain does not lead to a trusted root.
    #[error("has an unknown issuer")]
    UnknownIssuer,
    /// The certificate has expired.
    #[error("is expired")]
    Expired,
    /// The certificate is not valid yet.
    #[error("is not valid yet")]
    NotYetValid,
    /// The certificate was revoked.
    #[error("is revoked")]
    Revoked,
    /// The certificate is for another use, for example a server's certificate sent by a client.
    #[error("is not meant for this use")]
    WrongPurpose,
    /// A signature does not verify.
    #[error("has a bad signature")]
    BadSignature,
    /// The key is not among the pinned ones.
    #[error("has another key than the pinned ones")]
    KeyNotPinned,
    /// The certificate is not X.509.
    #[error("is malformed")]
    Malformed,
    /// Any other reason.
    #[error("is not acceptable")]
    Other,
}

/// Classifies a handshake error. Only [`TlsFailure::Verify`] is about trust; all other classes are
/// failed handshakes.
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

/// Classifies an I/O error during a handshake; `None` if TLS did not cause it.
pub fn classify_io(error: &io::Error) -> Option<TlsFailure> {
    error.get_ref()?.downcast_ref::<Error>().map(classify)
}

/// Text of an I/O error during a handshake, for the log. Replaces rustls texts that would contain
/// type names.
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
