//! Parsed fields of a leaf certificate: hosts, validity, subject.

mod distinguished_name;

use crate::file::{Digest, fingerprint};
use rustls_pki_types::CertificateDer;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

/// Parsed fields of a leaf certificate. The common name is ignored. [RFC 9525 §2]
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) names: Names,
    pub(crate) not_before: SystemTime,
    pub(crate) not_after: SystemTime,
    pub(crate) serial: Vec<u8>,
    pub(crate) fingerprint: Digest,
}

/// Hosts of a certificate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// DNS names in lower case; a wildcard includes its `*.`.
    pub(crate) dns: Vec<Box<str>>,
    pub(crate) ips: Vec<IpAddr>,
}

impl Leaf {
    /// Parses a certificate; `None` if it is not X.509.
    pub(crate) fn parse(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let validity = certificate.validity();
        Some(Self {
            names: Names::from_certificate(&certificate)?,
            not_before: system_time(validity.not_before),
            not_after: system_time(validity.not_after),
            serial: certificate.raw_serial().to_vec(),
            fingerprint: fingerprint(der),
        })
    }
}

impl Names {
    fn from_certificate(certificate: &X509Certificate<'_>) -> Option<Self> {
        let mut names = Self::default();
        let Some(extension) = certificate.subject_alternative_name().ok()? else {
            return Some(names);
        };
        for name in &extension.value.general_names {
            if let GeneralName::DNSName(dns) = name {
                names.dns.push(dns.to_ascii_lowercase().into_boxed_str());
            } else if let GeneralName::IPAddress(bytes) = name {
                names.ips.extend(ip(bytes));
            }
        }
        Some(names)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.dns.is_empty() && self.ips.is_empty()
    }

    /// Returns true if a name covers `host`, which must be in lower case. A wildcard matches
    /// exactly one label. [RFC 9525 §6.3]
    pub(crate) fn cover(&self, host: &str) -> bool {
        let parent = host.split_once('.').map(|(_, parent)| parent);
        self.dns.iter().any(|name| match name.strip_prefix("*.") {
            Some(domain) => Some(domain) == parent,
            None => &**name == host,
        })
    }
}

/// Subject of a certificate, such as `CN=robot,O=Example`; `None` if it is too long.
pub(crate) fn subject(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    distinguished_name::text(certificate.subject())
}

/// SHA-256 of a certificate's `SubjectPublicKeyInfo`; `None` if the certificate is not X.509. [RFC
/// 7469 §2.4]
pub(crate) fn key_digest(der: &[u8]) -> Option<Digest> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(fingerprint(certificate.public_key().raw))
}

/// Returns true if issuer and subject are equal.
pub(crate) fn is_self_signed(der: &[u8]) -> bool {
    X509Certificate::from_der(der)
        .is_ok_and(|(_, certificate)| certificate.subject() == certificate.issuer())
}

/// Organization of the certificate's issuer.
pub(crate) fn issuing_organization(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let organization = certificate.issuer().iter_organization().next()?;
    organization.as_str().ok().map(str::to_owned)
}

/// The start of the chain in which each certificate's issuer is the next one's subject.
pub(crate) fn linked<'c>(chain: &'c [CertificateDer<'c>]) -> &'c [CertificateDer<'c>] {
    let parsed = chain.iter().map_while(|der| {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        Some(certificate)
    });
    let parsed: Vec<X509Certificate<'_>> = parsed.collect();
    let links = parsed
        .windows(2)
        .take_while(|pair| matches!(pair, [one, issuer] if one.issuer() == issuer.subject()));
    let count = parsed.len().min(links.count() + 1);
    chain.get(..count).unwrap_or_default()
}

/// Returns true if a certificate is a certificate authority's.
pub(crate) fn is_authority(der: &[u8]) -> bool {
    X509Certificate::from_der(der).is_ok_and(|(_, certificate)| certificate.is_ca())
}

/// Expiry of a certificate, since 1970.
pub(crate) fn expiry(der: &[u8]) -> Option<Duration> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let not_after = system_time(certificate.validity().not_after);
    not_after.duration_since(UNIX_EPOCH).ok()
}

pub(crate) fn system_time(time: ASN1Time) -> SystemTime {
    let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
    UNIX_EPOCH
        .checked_add(Duration::from_secs(seconds))
        .unwrap_or(UNIX_EPOCH)
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}
