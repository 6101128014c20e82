//! Errors and warnings about TLS files and settings.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::time::ASN1Time;

/// Reason why a certificate, a key or a set of roots cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The file does not exist, or is a dangling symbolic link.
    #[error("{}: no such file", file.display())]
    Missing {
        /// Path of the file.
        file: PathBuf,
    },
    /// The file exists, but cannot be read.
    #[error("{}: cannot be read: {kind}", file.display())]
    Unreadable {
        /// Path of the file.
        file: PathBuf,
        /// Kind of the I/O error.
        kind: io::ErrorKind,
    },
    /// The path is a directory, a device or a pipe.
    #[error("{}: not a regular file", file.display())]
    NotAFile {
        /// Path of the file.
        file: PathBuf,
    },
    /// The file is larger than any valid certificate file.
    #[error("{}: larger than {limit_bytes} bytes", file.display())]
    TooLarge {
        /// Path of the file.
        file: PathBuf,
        /// Maximum size, in bytes.
        limit_bytes: u64,
    },
    /// The file has no `-----BEGIN` line: it is DER or empty.
    #[error("{}: not PEM: no line begins with \"-----BEGIN\"", file.display())]
    NotPem {
        /// Path of the file.
        file: PathBuf,
    },
    /// The PEM is truncated or not Base64, for example while the file is being written.
    #[error("{}: damaged PEM: {what}", file.display())]
    DamagedPem {
        /// Path of the file.
        file: PathBuf,
        /// Fault of the PEM text.
        what: &'static str,
    },
    /// The file contains PEM sections, but no certificate.
    #[error("{}: no CERTIFICATE in it, only {}", file.display(), found.join(", "))]
    NoCertificate {
        /// Path of the file.
        file: PathBuf,
        /// Labels of the sections.
        found: Vec<String>,
    },
    /// The file contains PEM sections, but no private key.
    #[error("{}: no private key in it, only {}", file.display(), found.join(", "))]
    NoKey {
        /// Path of the file.
        file: PathBuf,
        /// Labels of the sections.
        found: Vec<String>,
    },
    /// The key is encrypted with a passphrase.
    #[error("{}: the private key is encrypted", file.display())]
    EncryptedKey {
        /// Path of the file.
        file: PathBuf,
    },
    /// The kind or size of the key is not supported.
    #[error(
        "{}: unusable private key; RSA of 2048 to 8192 bits, ECDSA P-256, P-384 or P-521, \
         or Ed25519 is needed",
        file.display()
    )]
    BadKey {
        /// Path of the file.
        file: PathBuf,
    },
    /// A certificate is not valid X.509.
    #[error("{}: certificate {position} of the file is malformed", file.display())]
    BadCertificate {
        /// Path of the file.
        file: PathBuf,
        /// Position of the certificate in the file, from 1.
        position: usize,
    },
    /// The key does not belong to the certificate.
    #[error(
        "{}: does not belong to the first certificate of {}",
        key_file.display(),
        cert_file.display()
    )]
    KeyMismatch {
        /// Path of the certificate.
        cert_file: PathBuf,
        /// Path of the key.
        key_file: PathBuf,
    },
    /// The certificate has expired, and cannot replace a valid one.
    #[error("{}: expired on {}", file.display(), date(*not_after))]
    Expired {
        /// Path of the file.
        file: PathBuf,
        /// End of its validity.
        not_after: SystemTime,
    },
    /// The certificate is not valid yet, and cannot replace a valid one.
    #[error("{}: not valid before {}", file.display(), date(*not_before))]
    NotYetValid {
        /// Path of the file.
        file: PathBuf,
        /// Start of its validity.
        not_before: SystemTime,
    },
    /// The file contains no usable OCSP response.
    #[error("{}: {reason}", file.display())]
    BadStaple {
        /// Path of the file.
        file: PathBuf,
        /// Fault of the OCSP response.
        reason: StapleError,
    },
    /// A listener with `tls` has no certificate.
    #[error("no certificate is configured")]
    NoCertificateConfigured,
    /// The platform has no trusted root certificates.
    #[error("the platform has no trusted roots; install them, or write ca-file")]
    NoPlatformRoots,
    /// The rotation interval of ticket keys is not between 1 minute and 2 days.
    #[error("ticket keys must be turned every 60 to 172800 seconds, not every {}", .0.as_secs())]
    TicketPace(Duration),
    /// The operating system's random generator failed.
    #[error("no random bytes from the system")]
    NoRandomness,
    /// rustls refused the configuration.
    #[error("refused by the TLS library: {reason}")]
    Refused {
        /// Message of rustls.
        reason: String,
    },
}

/// Reason why an OCSP response cannot be stapled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StapleError {
    /// The file is not an OCSP response in DER. [RFC 6960 §4.2.1]
    #[error("not an OCSP response in DER")]
    Malformed,
    /// The response contains an error of the responder.
    #[error("the OCSP responder refused to answer")]
    Refused,
    /// The response is for another certificate.
    #[error("the OCSP response is about another certificate")]
    OtherCertificate,
    /// The status is "revoked" or "unknown".
    #[error("the OCSP response does not call the certificate good")]
    NotGood,
}

/// A problem that does not prevent the certificate's use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsWarning {
    /// The certificate has expired; clients refuse it.
    #[error("{}: expired on {}", file.display(), date(*not_after))]
    Expired {
        /// Path of the file.
        file: PathBuf,
        /// End of its validity.
        not_after: SystemTime,
    },
    /// The certificate expires within [`EXPIRY_WARNING`](crate::expiry::EXPIRY_WARNING).
    #[error("{}: expires on {}", file.display(), date(*not_after))]
    ExpiresSoon {
        /// Path of the file.
        file: PathBuf,
        /// End of its validity.
        not_after: SystemTime,
    },
    /// The certificate is not valid yet; clients refuse it.
    #[error("{}: not valid before {}", file.display(), date(*not_before))]
    NotYetValid {
        /// Path of the file.
        file: PathBuf,
        /// Start of its validity.
        not_before: SystemTime,
    },
    /// The certificate has no subject alternative name: clients refuse it, and only the first
    /// certificate of a listener is served at all. [RFC 9525 §6.3]
    #[error("{}: names no host (subjectAltName is missing)", file.display())]
    Nameless {
        /// Path of the file.
        file: PathBuf,
    },
    /// The OCSP response is stale and is not stapled.
    #[error("{}: stale since {}, not stapled", file.display(), date(*next_update))]
    StapleStale {
        /// Path of the file.
        file: PathBuf,
        /// Time when a newer response was due.
        next_update: SystemTime,
    },
}

impl TlsError {
    /// Returns true if only the certificate's dates are wrong.
    #[must_use]
    pub const fn is_out_of_date(&self) -> bool {
        matches!(self, Self::Expired { .. } | Self::NotYetValid { .. })
    }

    /// File that caused the error; `None` unless it is a single file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Missing { file }
            | Self::Unreadable { file, .. }
            | Self::NotAFile { file }
            | Self::TooLarge { file, .. }
            | Self::NotPem { file }
            | Self::DamagedPem { file, .. }
            | Self::NoCertificate { file, .. }
            | Self::NoKey { file, .. }
            | Self::EncryptedKey { file }
            | Self::BadKey { file }
            | Self::BadCertificate { file, .. }
            | Self::KeyMismatch { key_file: file, .. }
            | Self::Expired { file, .. }
            | Self::NotYetValid { file, .. }
            | Self::BadStaple { file, .. } => Some(file),
            Self::NoCertificateConfigured
            | Self::NoPlatformRoots
            | Self::TicketPace(_)
            | Self::NoRandomness
            | Self::Refused { .. } => None,
        }
    }
}

impl TlsWarning {
    /// Path of the certificate, or of its OCSP response.
    pub fn file(&self) -> &Path {
        match self {
            Self::Expired { file, .. }
            | Self::ExpiresSoon { file, .. }
            | Self::NotYetValid { file, .. }
            | Self::Nameless { file }
            | Self::StapleStale { file, .. } => file,
        }
    }
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self::Refused {
            reason: error.to_string(),
        }
    }
}

fn date(at: SystemTime) -> String {
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| ASN1Time::from_timestamp(seconds).ok())
        .map_or_else(|| format!("second {seconds}"), |time| time.to_string())
}
