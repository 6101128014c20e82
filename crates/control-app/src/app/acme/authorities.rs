//! The certificate authorities that the installation permits, and the settings to reach them.

use crate::app::outbound::is_private;
use control_domain::ManagedCertificate;
use control_sso::WebUrl;
use proxy_acme::{AddressRule, AuthorityAccess};
use proxy_tls::{ClientTls, ClientTlsSettings, PlatformRoots};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Let's Encrypt: its production directory, and its staging directory for trials.
const PUBLIC: [&str; 2] = [
    "https://acme-v02.api.letsencrypt.org/directory",
    "https://acme-staging-v02.api.letsencrypt.org/directory",
];

/// The certificate authorities that tenants may choose from; must be equal on all replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeAuthorities {
    /// URLs of their directories, exactly as tenants write them.
    pub directories: Vec<String>,
    /// Root certificates for connections to the authorities, as a PEM file; `None` for the
    /// system's.
    pub ca_file: Option<PathBuf>,
}

/// Hosts of the listed authorities, which may be private addresses. Any other host that an
/// authority's answers name must be public.
#[derive(Debug)]
struct ListedHosts(Vec<String>);

impl Default for AcmeAuthorities {
    fn default() -> Self {
        Self {
            directories: PUBLIC.map(str::to_owned).to_vec(),
            ca_file: None,
        }
    }
}

impl AcmeAuthorities {
    /// Loads the file of root certificates, if one is set, to report faults at start.
    ///
    /// # Errors
    ///
    /// The fault, with the name of the file.
    pub fn check_roots(&self) -> Result<(), String> {
        if self.ca_file.is_none() {
            return Ok(());
        }
        let tls = ClientTlsSettings::http1(self.ca_file.clone());
        let loaded = ClientTls::load(tls, &PlatformRoots::new());
        loaded.map(drop).map_err(|faults| {
            let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
            texts.join("; ")
        })
    }

    /// Connection settings for the authority of a managed certificate; `None` if the installation
    /// no longer permits it.
    pub(crate) fn access(&self, value: &ManagedCertificate) -> Option<AuthorityAccess> {
        let Self {
            directories,
            ca_file,
        } = self;
        let is_listed = directories.contains(&value.directory);
        let hosts = directories.iter().filter_map(|url| host(url));
        is_listed.then(|| AuthorityAccess {
            directory: value.directory.clone(),
            ca_file: ca_file.clone(),
            user_agent: concat!("controld/", env!("CARGO_PKG_VERSION")).to_owned(),
            rule: Some(Arc::new(ListedHosts(hosts.collect()))),
        })
    }
}

impl AddressRule for ListedHosts {
    fn permits(&self, host: &str, address: IpAddr) -> bool {
        self.0.iter().any(|listed| listed == host) || !is_private(address)
    }
}

fn host(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let without_port = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    WebUrl::parse(url).map(|_| without_port.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_host_may_be_private_and_others_may_not() {
        let rule = ListedHosts(vec!["ca.internal".to_owned()]);
        let private: IpAddr = "10.0.0.1".parse().unwrap();
        assert!(rule.permits("ca.internal", private));
        assert!(!rule.permits("metadata.internal", private));
        assert!(!rule.permits("169.254.169.254", "169.254.169.254".parse().unwrap()));
        assert!(rule.permits("acme.example", "1.1.1.1".parse().unwrap()));
    }

    #[test]
    fn the_host_of_a_directory_is_without_port() {
        assert_eq!(
            host("https://ca.example:14000/dir").as_deref(),
            Some("ca.example")
        );
        assert_eq!(
            host("https://CA.example/dir").as_deref(),
            Some("ca.example")
        );
        assert_eq!(host("https://[::1]:14000/dir").as_deref(), Some("[::1]"));
        assert_eq!(host("ca.example"), None);
    }
}
