//! TLS settings as validated values.

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

/// Settings of a listener's block `tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTlsSettings {
    /// Certificates, selected by server name; the first is the default. An empty list is
    /// [`TlsError::NoCertificateConfigured`](crate::error::TlsError::NoCertificateConfigured).
    pub certificates: Vec<CertificateSource>,
    /// Lowest accepted version.
    pub min_version: TlsVersion,
    /// Highest accepted version; not below `min_version`.
    pub max_version: TlsVersion,
    /// Whether client certificates are requested.
    pub client_auth: ClientAuth,
    /// Offered protocols, in order of preference; empty for no ALPN.
    pub alpn: Vec<Alpn>,
    /// Certificates for TLS-ALPN-01, presented to authorities that validate a host; requires
    /// protocols in `alpn`. [RFC 8737]
    pub challenges: Option<ChallengeCertificates>,
}

/// Settings of an upstream's block `tls`. None of them accepts every certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTlsSettings {
    /// Server name for SNI and verification; `None` for the target's host.
    pub sni: Option<ServerName<'static>>,
    /// File with trusted roots; `None` for the platform's.
    pub ca_file: Option<PathBuf>,
    /// Certificate for targets that request one; its `ocsp_file` is not used.
    pub client_certificate: Option<CertificateSource>,
    /// Lowest accepted version.
    pub min_version: TlsVersion,
    /// Offered protocols, in order of preference; empty for no ALPN.
    pub alpn: Vec<Alpn>,
    /// Whether chain, names and validity are verified. Without that, the key must be among `pins`,
    /// which fails if the list is empty.
    pub verify: bool,
    /// SHA-256 of the permitted public keys of the server's leaf certificate; empty permits any.
    /// [RFC 7469 §2.4]
    pub pins: Vec<[u8; 32]>,
}

/// Files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSource {
    /// PEM file with the leaf, followed by its intermediates.
    pub cert_file: PathBuf,
    /// PEM file with an unencrypted key in PKCS#8, PKCS#1 or SEC1; may be the same file as
    /// `cert_file`.
    pub key_file: PathBuf,
    /// Contents held in memory, used instead of `cert_file` and `key_file`, which then need not
    /// exist.
    pub held: Option<HeldCertificate>,
    /// Whether the files may be missing because the certificate is obtained later. Until then,
    /// handshakes for its `server_names` are refused.
    pub is_obtained: bool,
    /// File with a DER OCSP response for the leaf, which is stapled while it is fresh.
    pub ocsp_file: Option<PathBuf>,
    /// Names in lower case that a listener serves the certificate for, with `*.` for one label;
    /// empty for the names in the certificate. Upstreams ignore it.
    pub server_names: Vec<String>,
}

impl ClientTlsSettings {
    /// Settings for HTTP/1.1 over TLS 1.2 or newer to servers of any name, verified by the roots in
    /// `ca_file` or else the platform's.
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
    /// Returns true if the faults only mean that the certificate is not obtained yet.
    pub(crate) fn is_awaited(&self, faults: &[TlsError]) -> bool {
        let is_missing = |fault: &TlsError| matches!(fault, TlsError::Missing { .. });
        self.is_obtained && faults.iter().all(is_missing)
    }
}

/// A certificate in PEM, held in memory only.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldCertificate {
    /// The leaf, followed by its intermediates.
    pub chain_pem: Arc<str>,
    /// Unencrypted private key of the leaf.
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
    /// Not requested.
    None,
    /// Requested; a missing certificate is accepted, a rejected one is not.
    Optional {
        /// File with the roots for client certificates.
        ca_file: PathBuf,
    },
    /// Requested and required; only valid certificates are accepted.
    Required {
        /// File with the roots for client certificates.
        ca_file: PathBuf,
    },
}

/// An ALPN protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// `h2`. [RFC 9113 §3.2]
    H2,
    /// `http/1.1`; listeners accept `http/1.0` as well.
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

/// Reason why a text is not a supported TLS version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsVersionError {
    /// The version is prohibited. [RFC 8996]
    #[error("TLS {version} is forbidden by RFC 8996; one of 1.2, 1.3")]
    Forbidden {
        /// The given version.
        version: String,
    },
    /// The text is not a version.
    #[error("unknown TLS version {version:?}; one of 1.2, 1.3")]
    Unknown {
        /// The given text.
        version: String,
    },
}

impl ClientAuth {
    /// File with the roots, and whether a certificate is required; `None` if none is requested.
    pub(crate) fn demand(&self) -> Option<(&PathBuf, bool)> {
        match self {
            Self::None => None,
            Self::Optional { ca_file } => Some((ca_file, false)),
            Self::Required { ca_file } => Some((ca_file, true)),
        }
    }
}

impl Alpn {
    /// Identifiers that a listener accepts. Some clients announce HTTP/1.0, and would otherwise
    /// fail in the handshake.
    pub(crate) fn accepted(self) -> &'static [&'static [u8]] {
        match self {
            Self::H2 => &[b"h2"],
            Self::Http1 => &[b"http/1.1", b"http/1.0"],
        }
    }

    /// Identifier that is offered to targets.
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

    /// Versions from this one to `newest`; empty if `newest` is older.
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
