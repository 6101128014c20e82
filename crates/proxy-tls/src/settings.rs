//! What an operator may say about TLS, as parsed values.

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use rustls_pki_types::ServerName;
use std::path::PathBuf;
use std::str::FromStr;

/// One listener's `tls` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTlsSettings {
    /// Certificates chosen by server name; the first one serves names that no other covers.
    /// None at all is [`TlsError::NoCertificateConfigured`](crate::TlsFault).
    pub certificates: Vec<CertificateSource>,
    /// The oldest version a client may speak.
    pub min_version: TlsVersion,
    /// The newest version a client may speak; not below `min_version`.
    pub max_version: TlsVersion,
    /// Whether clients are asked for a certificate.
    pub client_auth: ClientAuth,
    /// Protocols offered, most preferred first. Empty: no ALPN is negotiated.
    pub alpn: Vec<Alpn>,
}

/// One upstream's `tls` block. Verification cannot be turned off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTlsSettings {
    /// The name asked for and verified; the target's own host when absent.
    pub sni: Option<ServerName<'static>>,
    /// Roots to trust instead of the platform's.
    pub ca_file: Option<PathBuf>,
    /// What to present to a target that asks for a certificate. Its `ocsp_file` is not sent.
    pub client_certificate: Option<CertificateSource>,
    /// The oldest version a target may speak.
    pub min_version: TlsVersion,
    /// Protocols offered, most preferred first. Empty: no ALPN is negotiated.
    pub alpn: Vec<Alpn>,
}

/// The files of one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSource {
    /// PEM, the leaf first, then its intermediates.
    pub cert_file: PathBuf,
    /// PEM, unencrypted PKCS#8, PKCS#1 or SEC1; may be the same file as `cert_file`.
    pub key_file: PathBuf,
    /// A DER OCSP response about the leaf, stapled while it is fresh.
    pub ocsp_file: Option<PathBuf>,
    /// The names a listener serves it for, in lower case, `*.` for one label; empty: those that
    /// it covers itself. Upstreams have no use for them.
    pub server_names: Vec<String>,
}

/// Whether a listener asks clients for a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// Clients are not asked.
    None,
    /// Clients are asked; one without a certificate is let in, one with a bad one is not.
    Optional {
        /// Roots that client certificates must lead to.
        ca_file: PathBuf,
    },
    /// Clients are asked, and only those with a good certificate are let in.
    Required {
        /// Roots that client certificates must lead to.
        ca_file: PathBuf,
    },
}

/// An application protocol that TLS can agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// `h2`. [RFC 9113 §3.2]
    H2,
    /// `http/1.1`, and on listeners `http/1.0` too.
    Http1,
}

/// A TLS version this proxy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2. [RFC 5246]
    V1_2,
    /// TLS 1.3. [RFC 8446]
    V1_3,
}

/// A text that names no version this proxy speaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsVersionError {
    /// A version that must not be used any more. [RFC 8996]
    #[error("TLS {version} is forbidden by RFC 8996; one of 1.2, 1.3")]
    Forbidden {
        /// The version as written.
        version: String,
    },
    /// Not a version.
    #[error("unknown TLS version {version:?}; one of 1.2, 1.3")]
    Unknown {
        /// The text as written.
        version: String,
    },
}

impl ClientAuth {
    /// The roots, and whether a certificate is required; none when none is asked for.
    pub(crate) fn demand(&self) -> Option<(&PathBuf, bool)> {
        match self {
            Self::None => None,
            Self::Optional { ca_file } => Some((ca_file, false)),
            Self::Required { ca_file } => Some((ca_file, true)),
        }
    }
}

impl Alpn {
    /// The identifiers a listener accepts: some clients announce HTTP/1.0 by name, and TLS
    /// would refuse them otherwise.
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
    /// This version and every newer one.
    pub(crate) fn and_newer(self) -> &'static [&'static SupportedProtocolVersion] {
        self.up_to(Self::V1_3)
    }

    /// The versions from this one to `newest`; none when that is older.
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

    /// Reads `1.2` or `1.3`; nothing else is a version.
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
