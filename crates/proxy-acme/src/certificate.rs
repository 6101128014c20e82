//! Parsed fields of a stored certificate.

use crate::error::AcmeError;
use crate::renewal::Validity;
use crate::settings::AcmeSettings;
use aws_lc_rs::digest::{SHA256, digest};
use instant_acme::CertificateIdentifier;
use proxy_model::AcmeKeyType;
use rcgen::{KeyPair, PublicKeyData};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, Der, PrivateKeyDer};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;

/// The parsed fields of a stored certificate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredCertificate {
    pub(crate) validity: Validity,
    /// DNS names in lower case.
    names: Vec<String>,
    /// `SubjectPublicKeyInfo` as DER. [RFC 5280 §4.1.2.7]
    public_key: Vec<u8>,
    /// Kind of the key; `None` for an unsupported one.
    key_type: Option<AcmeKeyType>,
    /// Issuer's key identifier and serial number, as in renewal information. [RFC 9773 §4.1]
    renewal_id: Option<(Vec<u8>, Vec<u8>)>,
    /// A number from 0 to 1, derived from the certificate, which spreads renewals.
    pub(crate) spread: f64,
}

impl StoredCertificate {
    /// Parses the leaf of a PEM chain.
    pub(crate) fn parse(pem: &[u8]) -> Result<Self, AcmeError> {
        let bad = |why: &str| AcmeError::BadCertificate(why.to_owned());
        let leaf = CertificateDer::from_pem_slice(pem).map_err(|_| bad("is not in PEM"))?;
        let (_, parsed) =
            X509Certificate::from_der(&leaf).map_err(|_| bad("is not an X.509 certificate"))?;
        let validity = parsed.validity();
        Ok(Self {
            validity: Validity {
                not_before: system_time(validity.not_before),
                not_after: system_time(validity.not_after),
            },
            names: names(&parsed),
            public_key: parsed.public_key().raw.to_vec(),
            key_type: key_type(&parsed),
            renewal_id: renewal_id(&parsed),
            spread: spread(&leaf),
        })
    }

    /// Parses a file with key and chain. All of it must be usable, since servers refuse to load a
    /// part.
    ///
    /// # Errors
    /// Reason why servers cannot use the file.
    pub(crate) fn from_file(pem: &[u8]) -> Result<Self, &'static str> {
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| "has no private key")?;
        let key = KeyPair::try_from(&key).map_err(|_| "has an unusable private key")?;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|_| "is not in PEM")?;
            X509Certificate::from_der(&certificate).map_err(|_| "is not an X.509 certificate")?;
        }
        let parsed = Self::parse(pem).map_err(|_| "has no certificate")?;
        let is_for_key = parsed.public_key == key.subject_public_key_info();
        is_for_key
            .then_some(parsed)
            .ok_or("has the key of another certificate")
    }

    /// Returns true if the certificate matches these settings.
    pub(crate) fn fits(&self, settings: &AcmeSettings) -> bool {
        self.covers(&settings.hosts, settings.key_type)
    }

    fn covers(&self, hosts: &[String], key_type: AcmeKeyType) -> bool {
        self.key_type == Some(key_type) && hosts.iter().all(|host| self.names.contains(host))
    }

    /// Checks an issued certificate: it must be for the key with this `SubjectPublicKeyInfo`.
    pub(crate) fn check(
        &self,
        hosts: &[String],
        key_type: AcmeKeyType,
        public_key: &[u8],
        now: SystemTime,
    ) -> Result<(), AcmeError> {
        let bad = |why: &str| Err(AcmeError::BadCertificate(why.to_owned()));
        if !self.covers(hosts, key_type) || self.public_key != public_key {
            return bad("is not for the hosts or the key that were asked for");
        }
        if self.validity.not_after <= now {
            return bad("has expired already");
        }
        Ok(())
    }

    /// Identifier in renewal information. [RFC 9773 §4.1]
    pub(crate) fn renewal_id(&self) -> Option<CertificateIdentifier<'static>> {
        let (issuer, serial) = self.renewal_id.as_ref()?;
        let id = CertificateIdentifier::new(Der::from_slice(issuer), Der::from_slice(serial));
        Some(id.into_owned())
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = extension.value.general_names.iter();
    let names = names.filter_map(|name| {
        let GeneralName::DNSName(name) = name else {
            return None;
        };
        Some(name.to_ascii_lowercase())
    });
    names.collect()
}

fn key_type(certificate: &X509Certificate<'_>) -> Option<AcmeKeyType> {
    let key = certificate.public_key().parsed().ok()?;
    if let PublicKey::EC(point) = &key {
        return match point.key_size() {
            256 => Some(AcmeKeyType::EcdsaP256),
            384 => Some(AcmeKeyType::EcdsaP384),
            _ => None,
        };
    }
    matches!(key, PublicKey::RSA(_)).then_some(AcmeKeyType::Rsa2048)
}

fn renewal_id(certificate: &X509Certificate<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut extensions = certificate.iter_extensions();
    let issuer = extensions.find_map(|extension| {
        let parsed = extension.parsed_extension();
        if let ParsedExtension::AuthorityKeyIdentifier(issuer) = parsed {
            issuer.key_identifier.as_ref()
        } else {
            None
        }
    });
    Some((issuer?.0.to_vec(), certificate.raw_serial().to_vec()))
}

/// A number from 0 to 1 by the digest of the certificate.
fn spread(leaf: &CertificateDer<'_>) -> f64 {
    let digest = digest(&SHA256, leaf);
    let first = digest.as_ref().first().copied().unwrap_or_default();
    f64::from(first) / f64::from(u8::MAX)
}

fn system_time(time: ASN1Time) -> SystemTime {
    let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
    let since = Duration::from_secs(seconds);
    UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{SigningRequest, signing_request};
    use rcgen::{CertificateParams, KeyPair};

    #[test]
    fn a_certificate_for_another_key_of_the_same_kind_is_refused() {
        let (hosts, key_type) = (vec!["a.test".to_owned()], AcmeKeyType::EcdsaP256);
        let [ordered, other]: [SigningRequest; 2] =
            std::array::from_fn(|_| signing_request(&hosts, key_type).unwrap());
        let issue = |request: &SigningRequest| {
            let key = KeyPair::from_pem(&request.key_pem).unwrap();
            let params = CertificateParams::new(hosts.clone()).unwrap();
            let pem = params.self_signed(&key).unwrap().pem();
            StoredCertificate::parse(pem.as_bytes()).unwrap()
        };
        let now = UNIX_EPOCH + Duration::from_hours(500_000);

        let checked = issue(&ordered).check(&hosts, key_type, &ordered.public_key, now);
        assert!(checked.is_ok(), "{checked:?}");
        let checked = issue(&other).check(&hosts, key_type, &ordered.public_key, now);
        assert!(
            matches!(checked, Err(AcmeError::BadCertificate(_))),
            "{checked:?}"
        );
    }
}
