//! Certificates submitted by operators: a chain and its private key in PEM.

use crate::secret::sha256_hex;
use jiff::Timestamp;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use rustls_pki_types::pem::{PemObject, SectionKind};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use std::time::Duration;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;
use zeroize::Zeroizing;

const MAX_PEM_BYTES: usize = 256 * 1024;
const MAX_CHAIN: usize = 10;

/// A chain and a key that belong together and may be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedCertificate {
    /// The hosts that the leaf covers, in lower case; addresses as text.
    pub hosts: Vec<String>,
    /// The first moment at which all of the chain holds.
    pub not_before: Timestamp,
    /// The last moment at which all of the chain holds.
    pub not_after: Timestamp,
    /// SHA-256 of the leaf in hexadecimal.
    pub fingerprint: String,
}

/// Error of a refused chain or key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Larger than any chain needs to be.
    #[error("is larger than 256 KiB, or has more than 10 certificates")]
    TooLarge,
    /// No section of the kind that is needed, or a damaged one.
    #[error("is not PEM of certificates")]
    NotPem,
    /// A section that does not belong to a chain.
    #[error("holds something else than certificates")]
    NotOnlyCertificates,
    /// A certificate that is not X.509.
    #[error("holds a certificate that cannot be read")]
    BadCertificate,
    /// A certificate that the one before it was not signed with.
    #[error("is not a chain: a certificate is not signed by the next one")]
    BrokenChain,
    /// The time of a certificate of the chain has passed.
    #[error("has expired")]
    Expired,
    /// A leaf that covers no host.
    #[error("names no host")]
    Nameless,
    /// The text does not contain exactly one unencrypted private key.
    #[error("is not one unencrypted private key in PEM")]
    NotAKey,
    /// The private key's type is unsupported by TLS.
    #[error("is a key of a kind that TLS does not know")]
    UnknownKey,
    /// The key of another certificate.
    #[error("does not belong to the certificate")]
    KeyMismatch,
}

impl CertificateError {
    /// Returns true if the fault is in the private key, and not in the chain.
    pub fn is_about_key(self) -> bool {
        matches!(self, Self::NotAKey | Self::UnknownKey | Self::KeyMismatch)
    }
}

impl CheckedCertificate {
    /// Checks that `chain_pem` is a chain, leaf first, that holds at `now` or later, and that
    /// `key_pem` is its key.
    ///
    /// # Errors
    ///
    /// [`CertificateError`] for the first fault.
    pub fn check(chain_pem: &str, key_pem: &str, now: Timestamp) -> Result<Self, CertificateError> {
        let chain = certificates(chain_pem)?;
        let checked = Self::from_chain(&chain)?;
        if checked.not_after < now {
            return Err(CertificateError::Expired);
        }
        check_signatures(&chain, checked.not_before)?;
        check_key(chain, &private_key(key_pem)?)?;
        Ok(checked)
    }

    fn from_chain(chain: &[CertificateDer<'static>]) -> Result<Self, CertificateError> {
        let leaf = chain.first().ok_or(CertificateError::NotPem)?;
        let mut checked = Self {
            hosts: hosts(&parse(leaf)?)?,
            not_before: Timestamp::MIN,
            not_after: Timestamp::MAX,
            fingerprint: sha256_hex(leaf),
        };
        for der in chain {
            let certificate = parse(der)?;
            let validity = certificate.validity();
            checked.not_before = checked.not_before.max(time(validity.not_before)?);
            checked.not_after = checked.not_after.min(time(validity.not_after)?);
        }
        if checked.not_after < checked.not_before {
            return Err(CertificateError::Expired);
        }
        Ok(checked)
    }
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    if pem.len() > MAX_PEM_BYTES {
        return Err(CertificateError::TooLarge);
    }
    // The text is stored as it is, and PostgreSQL keeps no NUL.
    if pem.contains('\0') {
        return Err(CertificateError::NotPem);
    }
    let mut chain = Vec::new();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text(pem)?) {
        let (kind, der) = section.map_err(|_| CertificateError::NotPem)?;
        let der = Zeroizing::new(der);
        if kind != SectionKind::Certificate {
            return Err(CertificateError::NotOnlyCertificates);
        }
        if chain.len() == MAX_CHAIN {
            return Err(CertificateError::TooLarge);
        }
        chain.push(CertificateDer::from(der.to_vec()));
    }
    if chain.is_empty() {
        return Err(CertificateError::NotPem);
    }
    Ok(chain)
}

/// The text without its byte order mark. A section would be skipped in silence if other text were before its `BEGIN`.
fn text(pem: &str) -> Result<&[u8], CertificateError> {
    let pem = pem.strip_prefix('\u{feff}').unwrap_or(pem);
    let is_misplaced = |line: &str| {
        let before = line.split_once("-----BEGIN ").map(|(before, _)| before);
        before.is_some_and(|before| {
            let is_blank = before.trim_matches([' ', '\t', '\u{feff}']).is_empty();
            !before.is_empty() && (is_blank || before.starts_with("-----END "))
        })
    };
    if pem.split(['\n', '\r']).any(is_misplaced) {
        return Err(CertificateError::NotPem);
    }
    Ok(pem.as_bytes())
}

fn private_key(pem: &str) -> Result<PrivateKeyDer<'static>, CertificateError> {
    if pem.len() > MAX_PEM_BYTES {
        return Err(CertificateError::NotAKey);
    }
    let text = text(pem).map_err(|_| CertificateError::NotAKey)?;
    let mut keys = PrivateKeyDer::pem_slice_iter(text);
    match (keys.next(), keys.next()) {
        (Some(Ok(key)), None) => Ok(key),
        _ => Err(CertificateError::NotAKey),
    }
}

fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, CertificateError> {
    let parsed = X509Certificate::from_der(der);
    let (rest, certificate) = parsed.map_err(|_| CertificateError::BadCertificate)?;
    let whole = rest.is_empty();
    whole
        .then_some(certificate)
        .ok_or(CertificateError::BadCertificate)
}

fn time(time: ASN1Time) -> Result<Timestamp, CertificateError> {
    let time = Timestamp::from_second(time.timestamp());
    time.map_err(|_| CertificateError::BadCertificate)
}

/// The names that count; the common name does not. [RFC 9525 §2]
fn hosts(leaf: &X509Certificate<'_>) -> Result<Vec<String>, CertificateError> {
    let extension = leaf.subject_alternative_name();
    let extension = extension.map_err(|_| CertificateError::BadCertificate)?;
    let extension = extension.ok_or(CertificateError::Nameless)?;
    let mut hosts = Vec::new();
    for name in &extension.value.general_names {
        if let GeneralName::DNSName(name) = name {
            hosts.push(name.to_ascii_lowercase());
        } else if let GeneralName::IPAddress(bytes) = name {
            hosts.extend(address(bytes));
        }
    }
    // The list is stored as words.
    let bad = |host: &String| host.is_empty() || host.contains(char::is_whitespace);
    if hosts.is_empty() || hosts.iter().any(bad) {
        return Err(CertificateError::Nameless);
    }
    Ok(hosts)
}

fn address(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(std::net::IpAddr::from);
    let address = v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(std::net::IpAddr::from));
    address.ok().map(|address| address.to_string())
}

/// Each certificate but the last must be signed by the one after it, for TLS servers.
fn check_signatures(
    chain: &[CertificateDer<'static>],
    at: Timestamp,
) -> Result<(), CertificateError> {
    let [leaf, intermediates @ .., last] = chain else {
        return Ok(());
    };
    let broken = CertificateError::BrokenChain;
    let anchor = anchor_from_trusted_cert(last).map_err(|_| broken)?;
    let seconds = u64::try_from(at.as_second()).unwrap_or(0);
    EndEntityCert::try_from(leaf)
        .map_err(|_| CertificateError::BadCertificate)?
        .verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            &[anchor],
            intermediates,
            UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
            KeyUsage::server_auth(),
            None,
            None,
        )
        .map_err(|_| broken)?;
    Ok(())
}

fn check_key(
    chain: Vec<CertificateDer<'static>>,
    key: &PrivateKeyDer<'static>,
) -> Result<(), CertificateError> {
    let key = any_supported_type(key).map_err(|_| CertificateError::UnknownKey)?;
    match CertifiedKey::new(chain, key).keys_match() {
        Ok(()) => Ok(()),
        Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
            Err(CertificateError::UnknownKey)
        }
        Err(_) => Err(CertificateError::KeyMismatch),
    }
}
