//! The settings of one certificate.

use proxy_model::AcmeKeyType;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    /// Hosts of the certificate, in lower case, at least one; `*.` for one label.
    pub hosts: Vec<String>,
    /// URL of the authority's directory.
    pub directory: String,
    /// Root certificates for the authority's own server, PEM; `None` for the system's.
    pub directory_ca_file: Option<PathBuf>,
    /// E-mail address for the authority's notices.
    pub email: String,
    /// Proof of control over the hosts.
    pub challenge: Challenge,
    /// An account at the authority that the ACME account is bound to. [RFC 8555 §7.3.4]
    pub external_account: Option<ExternalAccount>,
    /// Kind of the certificate's key.
    pub key_type: AcmeKeyType,
    /// Folder of accounts, keys and certificates.
    pub storage: PathBuf,
    /// Value of `User-Agent` in requests to the authority.
    pub user_agent: String,
}

/// A proof of control over a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A token over HTTP on port 80. [RFC 8555 §8.3]
    Http01,
    /// A certificate over TLS on port 443. [RFC 8737]
    TlsAlpn01,
    /// A TXT record, published by a program. [RFC 8555 §8.4]
    Dns01(DnsCommand),
}

/// A program that publishes and removes TXT records, called as `PROGRAM present|cleanup NAME VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsCommand {
    /// Path of the program.
    pub program: PathBuf,
    /// Maximum time of one run.
    pub timeout: Duration,
}

/// An account at the authority that the ACME account is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAccount {
    /// Identifier of its key.
    pub key_id: String,
    /// File with its MAC key, in base64url.
    pub key_file: PathBuf,
}

impl Challenge {
    /// The name in ACME. [RFC 8555 §8]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Dns01(_) => "dns-01",
        }
    }
}
