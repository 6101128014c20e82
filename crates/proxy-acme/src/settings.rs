//! Settings of a certificate.

use proxy_model::AcmeKeyType;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    /// Hosts in lower case, at least one; `*.` stands for one label.
    pub hosts: Vec<String>,
    /// URL of the authority's directory.
    pub directory: String,
    /// PEM file with root certificates for the authority's server; `None` for the system's.
    pub directory_ca_file: Option<PathBuf>,
    /// E-mail address for the authority's notices.
    pub email: String,
    /// How control over the hosts is proven.
    pub challenge: Challenge,
    /// External account that the ACME account is bound to. [RFC 8555 §7.3.4]
    pub external_account: Option<ExternalAccount>,
    /// Kind of the certificate's key.
    pub key_type: AcmeKeyType,
    /// Folder for accounts, keys and certificates.
    pub storage: PathBuf,
    /// Value of `User-Agent` in requests to the authority.
    pub user_agent: String,
}

/// Method to prove control over a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// Token by HTTP on port 80. [RFC 8555 §8.3]
    Http01,
    /// Certificate by TLS on port 443. [RFC 8737]
    TlsAlpn01,
    /// TXT record, published by a program. [RFC 8555 §8.4]
    Dns01(DnsCommand),
}

/// Program that publishes and removes TXT records, called as `PROGRAM present|cleanup NAME VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsCommand {
    /// Path of the program.
    pub program: PathBuf,
    /// Time limit for a run.
    pub timeout: Duration,
}

/// External account that the ACME account is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAccount {
    /// Identifier of the external account's key.
    pub key_id: String,
    /// File with the MAC key in base64url.
    pub key_file: PathBuf,
}

impl Challenge {
    /// Name of the challenge type. [RFC 8555 §8]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Dns01(_) => "dns-01",
        }
    }
}
