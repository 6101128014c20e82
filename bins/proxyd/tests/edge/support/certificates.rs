//! Certificates made for a test.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate authority.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key.
pub(crate) struct Identity {
    pub(crate) chain: String,
    pub(crate) key: String,
    der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        Self { issuer }
    }

    /// A certificate for a server with these names, valid until the year 2100.
    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        self.issue_until(names, 2100)
    }

    /// Like [`Self::issue`], with a serial number of one byte.
    pub(crate) fn issue_numbered(&self, names: &[&str], serial: u8) -> Identity {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.serial_number = Some(vec![serial].into());
        self.sign(params)
    }

    /// Like [`Self::issue`], valid until the given year.
    pub(crate) fn issue_until(&self, names: &[&str], year: i32) -> Identity {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_after = date_time_ymd(year, 1, 1);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A certificate for a client.
    pub(crate) fn issue_to_client(&self, name: &str) -> Identity {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    /// Like [`Self::issue_to_client`], with a critical extension that verifiers do not know.
    pub(crate) fn issue_to_client_with_unknown_extension(&self) -> Identity {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let mut unknown = CustomExtension::from_oid_content(&[1, 3, 9999, 1], vec![5, 0]);
        unknown.set_criticality(true);
        params.custom_extensions = vec![unknown];
        self.sign(params)
    }

    /// A self-signed certificate for a server with these names, as `openssl req -x509` makes it,
    /// valid until the given year; and the same as a trusted authority.
    pub(crate) fn self_signed(names: &[&str], year: i32) -> (Identity, Self) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let (key_pem, key_der) = (key.serialize_pem(), key.serialize_der());
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        let identity = Identity {
            chain: issuer.pem(),
            key: key_pem,
            der: issuer.der().clone(),
            key_der,
        };
        (identity, Self { issuer })
    }

    /// Valid for `time` from now.
    #[expect(clippy::disallowed_methods, reason = "a test reads the clock")]
    pub(crate) fn issue_to_client_for(&self, name: &str, time: Duration) -> Identity {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_after = (SystemTime::now() + time).into();
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Identity {
        params.not_before = date_time_ymd(2000, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            chain: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().clone(),
            key_der: key.serialize_der(),
        }
    }

    /// The certificates as trusted roots.
    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        roots
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Writes the authority's own certificate.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let file = folder.join(name);
        fs::write(&file, self.issuer.pem()).unwrap();
        file
    }
}

impl Identity {
    /// Writes the chain and the key as `{name}.crt` and `{name}.key`, atomically.
    pub(crate) fn write(&self, folder: &Path, name: &str) {
        for (ending, text) in [("crt", &self.chain), ("key", &self.key)] {
            let new = folder.join(format!("{name}.new"));
            fs::write(&new, text).unwrap();
            fs::rename(new, folder.join(format!("{name}.{ending}"))).unwrap();
        }
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.der.clone()
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key_der.clone()).into()
    }
}
