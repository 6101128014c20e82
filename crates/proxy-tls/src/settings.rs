//! TLS settings as parsed values.

use crate::challenges::ChallengeCertificates;
use crate::error::TlsError;
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use rustls_pki_types::ServerName;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The `tls` block of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTlsSettings {
    /// Certificates selected by server name; the first is the default. An empty list is
    /// [`TlsError::NoCertificateConfigured`](crate::error::TlsError::NoCertificateConfigured).
    pub certificates: Vec<CertificateSource>,
    /// Lowest accepted version.
    pub min_version: TlsVersion,
    /// Highest accepted version; not below `min_version`.
    pub max_version: TlsVersion,
    /// Request for client certificates.
    pub client_auth: ClientAuth,
    /// Protocols offered, in order of preference. Empty: no ALPN is negotiated.
    pub alpn: Vec<Alpn>,
    /// Certificates for TLS-ALPN-01, shown to authorities that validate a host; requires protocols in `alpn`.
    /// [RFC 8737]
    pub challenges: Option<ChallengeCertificates>,
}

/// The `tls` block of an upstream. There is no setting that admits any certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTlsSettings {
    /// The name to send and to verify; `None` for the target's own host.
    pub sni: Option<ServerName<'static>>,
    /// File of trusted roots; `None` for the platform's.
    pub ca_file: Option<PathBuf>,
    /// Certificate for targets that request one. Its `ocsp_file` is not sent.
    pub client_certificate: Option<CertificateSource>,
    /// Lowest accepted version.
    pub min_version: TlsVersion,
    /// Protocols offered, in order of preference. Empty: no ALPN is negotiated.
    pub alpn: Vec<Alpn>,
    /// True if chain, names and validity are verified; if not, one of `pins` must fit, and none fits an empty list.
    pub verify: bool,
    /// SHA-256 of the public keys that the server's own certificate may have; empty for any. [RFC 7469 §2.4]
    pub pins: Vec<[u8; 32]>,
}

/// The files of one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSource {
    /// PEM: the leaf, then its intermediates.
    pub cert_file: PathBuf,
    /// PEM, unencrypted PKCS#8, PKCS#1 or SEC1; may be the same file as `cert_file`.
    pub key_file: PathBuf,
    /// Contents used instead of `cert_file` and `key_file`, which then need not exist: a
    /// certificate held in memory only.
    pub held: Option<HeldCertificate>,
    /// True if the files may be missing: the certificate is obtained later, and handshakes for its `server_names` are
    /// refused until then.
    pub is_obtained: bool,
    /// A DER OCSP response for the leaf, stapled while it is fresh.
    pub ocsp_file: Option<PathBuf>,
    /// The names that a listener serves it for, in lower case, `*.` for one label; empty for the
    /// names in the certificate. Not used by upstreams.
    pub server_names: Vec<String>,
}

impl ClientTlsSettings {
    /// Settings for HTTP/1.1 over TLS 1.2 or newer to a server of any name, verified by the roots in
    /// `ca_file`, or by those of the platform.
    pub fn http1(ca_file: Option<PathBuf>) -> Self {
        Self {
            sni: None,
            ca_file,
            client_certificate: None,
            min_version: TlsVersion::V1_2,
            alpn: vec![Alpn::Http1],
            verify: true,
            pins: Vec::new(),
        }
    }
}

impl CertificateSource {
    /// Returns true if these faults only state that a certificate is yet to be obtained.
    pub(crate) fn is_awaited(&self, faults: &[TlsError]) -> bool {
        let is_missing = |fault: &TlsError| matches!(fault, TlsError::Missing { .. });
        self.is_obtained && faults.iter().all(is_missing)
    }
}

/// A certificate in PEM; its private key is on no disk.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldCertificate {
    /// The leaf, then its intermediates.
    pub chain_pem: Arc<str>,
    /// The private key of the leaf, unencrypted.
    pub key_pem: Arc<Zeroizing<String>>,
}

impl fmt::Debug for HeldCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldCertificate(…)")
    }
}

/// Client certificates of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// No client certificate is requested.
    None,
    /// Requested; a client without one is accepted, one with a rejected one is not.
    Optional {
        /// File of roots for client certificates.
        ca_file: PathBuf,
    },
    /// Requested; only clients with a valid one are accepted.
    Required {
        /// File of roots for client certificates.
        ca_file: PathBuf,
    },
}

/// An application protocol for ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// `h2`. [RFC 9113 §3.2]
    H2,
    /// `http/1.1`, and on listeners `http/1.0` too.
    Http1,
}

/// A supported version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2. [RFC 5246]
    V1_2,
    /// TLS 1.3. [RFC 8446]
    V1_3,
}

/// A text that is not a supported version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsVersionError {
    /// A version that is prohibited. [RFC 8996]
    #[error("TLS {version} is forbidden by RFC 8996; one of 1.2, 1.3")]
    Forbidden {
        /// The version as written.
        version: String,
    },
    /// The text is not a version.
    #[error("unknown TLS version {version:?}; one of 1.2, 1.3")]
    Unknown {
        /// The text as written.
        version: String,
    },
}

impl ClientAuth {
    /// The roots, and whether a certificate is required; `None` if none is requested.
    pub(crate) fn demand(&self) -> Option<(&PathBuf, bool)> {
        match self {
            Self::None => None,
            Self::Optional { ca_file } => Some((ca_file, false)),
            Self::Required { ca_file } => Some((ca_file, true)),
        }
    }
}

impl Alpn {
    /// The identifiers that a listener accepts: some clients announce HTTP/1.0, and without it TLS
    /// would refuse them.
    pub(crate) fn accepted(self) -> &'static [&'static [u8]] {
        match self {
            Self::H2 => &[b"h2"],
            Self::Http1 => &[b"http/1.1", b"http/1.0"],
        }
    }

    /// The identifier offered to a target.
    pub(crate) fn offered(self) -> &'static [u8] {
        match self {
            Self::H2 => b"h2",
            Self::Http1 => b"http/1.1",
        }
    }
}

impl TlsVersion {
    /// This version and all newer ones.
    pub(crate) fn and_newer(self) -> &'static [&'static SupportedProtocolVersion] {
        self.up_to(Self::V1_3)
    }

    /// The versions from this one to `newest`; empty if that is older.
    pub(crate) fn up_to(self, newest: Self) -> &'static [&'static SupportedProtocolVersion] {
        static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
        static ONLY_1_2: [&SupportedProtocolVersion; 1] = [&TLS12];
        static ONLY_1_3: [&SupportedProtocolVersion; 1] = [&TLS13];
        match (self, newest) {
            (Self::V1_2, Self::V1_3) => &BOTH,
            (Self::V1_2, Self::V1_2) => &ONLY_1_2,
            (Self::V1_3, Self::V1_3) => &ONLY_1_3,
            (Self::V1_3, Self::V1_2) => &[],
        }
    }
}

impl FromStr for TlsVersion {
    type Err = TlsVersionError;

    /// Parses `1.2` or `1.3`.
    fn from_str(text: &str) -> Result<Self, TlsVersionError> {
        let version = text.to_owned();
        match text {
            "1.2" => Ok(Self::V1_2),
            "1.3" => Ok(Self::V1_3),
            "1.0" | "1.1" => Err(TlsVersionError::Forbidden { version }),
            _ => Err(TlsVersionError::Unknown { version }),
        }
    }
}
