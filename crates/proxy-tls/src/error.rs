//! Why TLS cannot be set up, and what is about to go wrong with it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::time::ASN1Time;

/// Why a certificate, a key or a set of roots cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The file does not exist, or its link leads nowhere.
    #[error("{}: no such file", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The file exists and cannot be read.
    #[error("{}: cannot be read: {kind}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        kind: io::ErrorKind,
    },
    /// A directory, a device or a pipe.
    #[error("{}: not a regular file", file.display())]
    NotAFile {
        /// The file.
        file: PathBuf,
    },
    /// Larger than any certificate file should be.
    #[error("{}: larger than {limit_bytes} bytes", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The most that is read.
        limit_bytes: u64,
    },
    /// No `-----BEGIN` line, as in a DER file or an empty one.
    #[error("{}: not PEM: no line begins with \"-----BEGIN\"", file.display())]
    NotPem {
        /// The file.
        file: PathBuf,
    },
    /// PEM that ends too early or is not Base64, as in a file that is being written.
    #[error("{}: damaged PEM: {what}", file.display())]
    DamagedPem {
        /// The file.
        file: PathBuf,
        /// The damage.
        what: &'static str,
    },
    /// PEM of another kind where a certificate is needed.
    #[error("{}: no CERTIFICATE in it, only {}", file.display(), found.join(", "))]
    NoCertificate {
        /// The file.
        file: PathBuf,
        /// The kinds found.
        found: Vec<String>,
    },
    /// PEM of another kind where a private key is needed.
    #[error("{}: no private key in it, only {}", file.display(), found.join(", "))]
    NoKey {
        /// The file.
        file: PathBuf,
        /// The kinds found.
        found: Vec<String>,
    },
    /// The key is protected by a passphrase, which a proxy cannot type.
    #[error("{}: the private key is encrypted", file.display())]
    EncryptedKey {
        /// The file.
        file: PathBuf,
    },
    /// A key of a kind or size that TLS does not allow here.
    #[error(
        "{}: unusable private key; RSA of 2048 to 8192 bits, ECDSA P-256, P-384 or P-521, \
         or Ed25519 is needed",
        file.display()
    )]
    BadKey {
        /// The file.
        file: PathBuf,
    },
    /// A certificate that is not valid X.509.
    #[error("{}: certificate {position} of the file is malformed", file.display())]
    BadCertificate {
        /// The file.
        file: PathBuf,
        /// Which one, counted from 1.
        position: usize,
    },
    /// The key belongs to another certificate.
    #[error(
        "{}: does not belong to the first certificate of {}",
        key_file.display(),
        cert_file.display()
    )]
    KeyMismatch {
        /// The certificate's file.
        cert_file: PathBuf,
        /// The key's file.
        key_file: PathBuf,
    },
    /// A new certificate is too old to replace a valid one.
    #[error("{}: expired on {}", file.display(), date(*not_after))]
    Expired {
        /// The file.
        file: PathBuf,
        /// Its last moment.
        not_after: SystemTime,
    },
    /// A new certificate is too young to replace a valid one.
    #[error("{}: not valid before {}", file.display(), date(*not_before))]
    NotYetValid {
        /// The file.
        file: PathBuf,
        /// Its first moment.
        not_before: SystemTime,
    },
    /// The file holds nothing that could be stapled.
    #[error("{}: {reason}", file.display())]
    BadStaple {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: StapleError,
    },
    /// A listener has `tls` and no certificate.
    #[error("no certificate is configured")]
    NoCertificateConfigured,
    /// The platform has no roots to trust.
    #[error("the platform has no trusted roots; install them, or write ca-file")]
    NoPlatformRoots,
    /// Ticket keys turned at a pace outside 1 minute to 2 days.
    #[error("ticket keys must be turned every 60 to 172800 seconds, not every {}", .0.as_secs())]
    TicketPace(Duration),
    /// The system gave no random bytes.
    #[error("no random bytes from the system")]
    NoRandomness,
    /// rustls refused the configuration.
    #[error("refused by the TLS library: {reason}")]
    Refused {
        /// What it said.
        reason: String,
    },
}

/// Why a file is no OCSP response worth stapling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StapleError {
    /// Not an OCSP response in DER. [RFC 6960 §4.2.1]
    #[error("not an OCSP response in DER")]
    Malformed,
    /// The responder answered with an error.
    #[error("the OCSP responder refused to answer")]
    Refused,
    /// The response does not speak of this certificate.
    #[error("the OCSP response is about another certificate")]
    OtherCertificate,
    /// The response says revoked or unknown.
    #[error("the OCSP response does not call the certificate good")]
    NotGood,
}

/// Something that works and soon may not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsWarning {
    /// Clients refuse this certificate.
    #[error("{}: expired on {}", file.display(), date(*not_after))]
    Expired {
        /// The file.
        file: PathBuf,
        /// Its last moment.
        not_after: SystemTime,
    },
    /// It has less than [`EXPIRY_WARNING`](crate::EXPIRY_WARNING) to go.
    #[error("{}: expires on {}", file.display(), date(*not_after))]
    ExpiresSoon {
        /// The file.
        file: PathBuf,
        /// Its last moment.
        not_after: SystemTime,
    },
    /// Clients refuse this certificate until then.
    #[error("{}: not valid before {}", file.display(), date(*not_before))]
    NotYetValid {
        /// The file.
        file: PathBuf,
        /// Its first moment.
        not_before: SystemTime,
    },
    /// Without a subject alternative name no client accepts it, and only the first
    /// certificate of a listener is ever served. [RFC 9525 §6.3]
    #[error("{}: names no host (subjectAltName is missing)", file.display())]
    Nameless {
        /// The file.
        file: PathBuf,
    },
    /// The OCSP response is stale and is not stapled.
    #[error("{}: stale since {}, not stapled", file.display(), date(*next_update))]
    StapleStale {
        /// The file.
        file: PathBuf,
        /// When a newer response was due.
        next_update: SystemTime,
    },
}

impl TlsError {
    /// The file that is at fault, if it is one file's fault.
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
    /// The certificate's file, or that of its staple.
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
