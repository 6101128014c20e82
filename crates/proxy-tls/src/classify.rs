//! Why a handshake failed, as a small closed set.

use crate::listed::Untrusted;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, OtherError};
use std::io;

/// What ended a handshake. The full story for the log is the error's own `Display`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsFailure {
    /// The peer's certificate was not accepted.
    #[error("certificate {0}")]
    Verify(VerifyFailure),
    /// The peer ended the handshake with an alert, as one does that wants a client
    /// certificate, or does not like ours.
    #[error("peer sent alert {0:?}")]
    Alert(AlertDescription),
    /// The two sides have no version, cipher suite, group or protocol in common.
    #[error("nothing in common with the peer")]
    Incompatible,
    /// The peer does not speak TLS at all, as a plaintext server on that port.
    #[error("peer does not speak TLS")]
    NotTls,
    /// The peer broke the protocol.
    #[error("peer broke the protocol")]
    Protocol,
    /// This side failed.
    #[error("failed on this side")]
    Local,
}

/// Why a certificate was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyFailure {
    /// It is for other names.
    #[error("is not valid for the name")]
    WrongName,
    /// It leads to no trusted root.
    #[error("has an unknown issuer")]
    UnknownIssuer,
    /// Its time is over.
    #[error("is expired")]
    Expired,
    /// Its time has not come.
    #[error("is not valid yet")]
    NotYetValid,
    /// Its issuer took it back.
    #[error("is revoked")]
    Revoked,
    /// It is for another use, such as a server's certificate shown by a client.
    #[error("is not meant for this use")]
    WrongPurpose,
    /// A signature does not match.
    #[error("has a bad signature")]
    BadSignature,
    /// It is not X.509.
    #[error("is malformed")]
    Malformed,
    /// Anything else.
    #[error("is not acceptable")]
    Other,
}

/// Sorts an error of a handshake. Only [`TlsFailure::Verify`] is about trust; the rest are
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
        | Error::UnsupportedNameType => TlsFailure::Verify(VerifyFailure::of(error)),
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

/// Sorts an I/O error of a handshake; none when TLS did not cause it.
pub fn classify_io(error: &io::Error) -> Option<TlsFailure> {
    error.get_ref()?.downcast_ref::<Error>().map(classify)
}

/// What an I/O error of a handshake says, for the log: its own words, or ours where rustls would show
/// the names of its types.
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

impl VerifyFailure {
    pub(crate) fn of(error: &Error) -> Self {
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
