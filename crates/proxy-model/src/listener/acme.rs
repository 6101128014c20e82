//! Certificates obtained from an authority by ACME. [RFC 8555]

use crate::place::{Place, Setting};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A certificate that is obtained and renewed by ACME.
#[derive(Clone, Debug)]
pub struct Acme {
    /// Place of the block.
    pub place: Place,
    /// Hosts of the certificate, in lower case, at least one; `*.` for one label.
    pub hosts: Vec<Setting<String>>,
    /// URL of the authority's directory.
    pub directory: Setting<String>,
    /// Root certificates for the authority's own server; `None` for the system's.
    pub directory_ca_file: Option<Setting<PathBuf>>,
    /// Address for the authority's notices.
    pub email: Setting<String>,
    /// True if the authority's terms of service are accepted; always true in a model.
    pub terms_agreed: Setting<bool>,
    /// Proof of control over the hosts.
    pub challenge: Setting<AcmeChallenge>,
    /// Program that publishes and removes the records of DNS-01; present exactly for that
    /// challenge.
    pub dns_command: Option<Setting<PathBuf>>,
    /// Maximum time of one run of the program.
    pub dns_command_timeout: Setting<Duration>,
    /// An account at the authority that the ACME account is bound to. [RFC 8555 §7.3.4]
    pub eab: Option<ExternalAccount>,
    /// Kind of the certificate's key.
    pub key_type: Setting<AcmeKeyType>,
    /// Folder of accounts, keys and certificates.
    pub storage: Setting<PathBuf>,
}

/// An account at the authority that the ACME account is bound to.
#[derive(Clone, Debug)]
pub struct ExternalAccount {
    /// Identifier of the account's key.
    pub key_id: Setting<String>,
    /// File with the account's MAC key, in base64url.
    pub key_file: Setting<PathBuf>,
}

/// A proof of control over a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcmeChallenge {
    /// A token over HTTP on port 80. [RFC 8555 §8.3]
    Http01,
    /// A certificate over TLS on port 443. [RFC 8737]
    TlsAlpn01,
    /// A TXT record. [RFC 8555 §8.4]
    Dns01,
}

/// Kind of a certificate's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcmeKeyType {
    /// ECDSA with P-256.
    EcdsaP256,
    /// ECDSA with P-384.
    EcdsaP384,
    /// RSA with 2048 bits.
    Rsa2048,
}

impl fmt::Display for AcmeChallenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Dns01 => "dns-01",
        })
    }
}

impl fmt::Display for AcmeKeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EcdsaP256 => "ecdsa-p256",
            Self::EcdsaP384 => "ecdsa-p384",
            Self::Rsa2048 => "rsa-2048",
        })
    }
}
