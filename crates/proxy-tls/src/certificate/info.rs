//! Properties of a certificate, for metrics and the admin interface.

use crate::certificate::Certificate;
use crate::certificate::leaf::{Leaf, expiry, is_self_signed, issuing_organization, linked};
use crate::roots::pem;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Properties of a certificate, for metrics and the admin interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateInfo {
    /// Hosts in lower case, names before addresses.
    pub names: Vec<String>,
    /// Start of the validity.
    pub not_before: SystemTime,
    /// End of the validity.
    pub not_after: SystemTime,
    /// Path of the certificate file.
    pub file: PathBuf,
    /// SHA-256 of the certificate as DER.
    pub fingerprint: [u8; 32],
}

/// Properties of a chain: hosts, validity, and its authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainInfo {
    names: Vec<String>,
    not_before: SystemTime,
    not_after: SystemTime,
    /// Earliest expiry of the leaf and its issuers, since 1970.
    expires: Duration,
    /// Whether the chain includes the leaf's issuer.
    has_issuer: bool,
    is_self_signed: bool,
    /// Organization that issued the leaf.
    organization: Option<String>,
}

impl ChainInfo {
    /// Parses a chain in PEM; `None` if it contains no X.509 certificate.
    #[must_use]
    pub fn parse(chain_pem: &[u8]) -> Option<Self> {
        let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(pem::text(chain_pem))
            .map_while(Result::ok)
            .collect();
        let first = chain.first()?;
        let leaf = Leaf::parse(first)?;
        let linked = linked(&chain);
        Some(Self {
            names: names(&leaf),
            not_before: leaf.not_before,
            not_after: leaf.not_after,
            expires: linked.iter().filter_map(|one| expiry(one)).min()?,
            has_issuer: 1 < linked.len(),
            is_self_signed: is_self_signed(first),
            organization: issuing_organization(first),
        })
    }

    /// Returns true if the chain is a renewal of `old`: for all of its hosts, by the same
    /// authority, valid without a gap and for at least as long, and with an issuer if the old chain
    /// has one.
    #[must_use]
    pub fn renews(&self, old: &Self) -> bool {
        let has_names = old.names.iter().all(|name| self.names.contains(name));
        let is_as_long = old.not_after <= self.not_after && old.expires <= self.expires;
        has_names
            && is_as_long
            && self.not_before <= old.not_after
            && self.has_issuer >= old.has_issuer
            && self.has_authority_of(old)
    }

    /// Returns true if clients that trust the authority of `old` also trust this chain, judged by
    /// issuer names. An authority may alternate between several issuers of the same organization.
    fn has_authority_of(&self, old: &Self) -> bool {
        if old.is_self_signed || self.is_self_signed {
            return old.is_self_signed;
        }
        match (&old.organization, &self.organization) {
            (Some(old), Some(new)) => old == new,
            (Some(_) | None, _) => true,
        }
    }
}

/// Hosts of a leaf, names before addresses.
fn names(leaf: &Leaf) -> Vec<String> {
    let dns = leaf.names.dns.iter().map(ToString::to_string);
    let ips = leaf.names.ips.iter().map(ToString::to_string);
    dns.chain(ips).collect()
}

impl From<&Certificate> for CertificateInfo {
    fn from(certificate: &Certificate) -> Self {
        let leaf = certificate.leaf();
        Self {
            names: names(leaf),
            not_before: leaf.not_before,
            not_after: leaf.not_after,
            file: certificate.file().clone(),
            fingerprint: leaf.fingerprint,
        }
    }
}

impl CertificateInfo {
    /// Seconds from `now` until the expiry; negative afterwards.
    pub fn seconds_left(&self, now: SystemTime) -> i64 {
        let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
        self.not_after
            .duration_since(now)
            .map_or_else(|late| -seconds(late.duration()), seconds)
    }
}
