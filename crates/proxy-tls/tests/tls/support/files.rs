//! Certificates and files for tests.

use proxy_tls::CertificateSource;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256, SerialNumber,
    date_time_ymd,
};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyKind {
    Ecdsa,
    Ed25519,
    Rsa,
}

/// Fields of a leaf certificate.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) names: Vec<&'static str>,
    pub(crate) kind: KeyKind,
    /// First and last year of validity.
    pub(crate) years: (i32, i32),
    pub(crate) serial: u8,
    pub(crate) for_clients: bool,
}

impl Leaf {
    pub(crate) fn new(names: &[&'static str]) -> Self {
        Self {
            names: names.to_vec(),
            kind: KeyKind::Ecdsa,
            years: (2000, 2100),
            serial: 7,
            for_clients: false,
        }
    }

    pub(crate) fn client() -> Self {
        Self {
            for_clients: true,
            ..Self::new(&[])
        }
    }
}

pub(crate) struct Issued {
    pub(crate) cert: String,
    pub(crate) key: KeyPair,
    pub(crate) der: Vec<u8>,
}

pub(crate) struct Ca {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn issue(&self, leaf: &Leaf) -> Issued {
        let algorithm = match leaf.kind {
            KeyKind::Ecdsa => &PKCS_ECDSA_P256_SHA256,
            KeyKind::Ed25519 => &PKCS_ED25519,
            KeyKind::Rsa => &PKCS_RSA_SHA256,
        };
        let key = KeyPair::generate_for(algorithm).unwrap();
        let names: Vec<String> = leaf.names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "robot");
        params.not_before = date_time_ymd(leaf.years.0, 1, 1);
        params.not_after = date_time_ymd(leaf.years.1, 1, 1);
        params.serial_number = Some(SerialNumber::from_slice(&[leaf.serial]));
        params.extended_key_usages = vec![if leaf.for_clients {
            ExtendedKeyUsagePurpose::ClientAuth
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        }];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued {
            cert: certificate.pem(),
            der: certificate.der().to_vec(),
            key,
        }
    }
}

/// Folder that is deleted after the test.
pub(crate) struct Dir(TempDir);

impl Dir {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes to an existing file, or creates it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes a certificate and its key, as `stem.crt` and `stem.key`.
    pub(crate) fn put(&self, stem: &str, issued: &Issued) -> CertificateSource {
        CertificateSource {
            cert_file: self.write(&format!("{stem}.crt"), &issued.cert),
            key_file: self.write(&format!("{stem}.key"), issued.key.serialize_pem()),
            held: None,
            is_obtained: false,
            ocsp_file: None,
            server_names: Vec::new(),
        }
    }

    /// Points the link `name` to `target` atomically, as Kubernetes does with `..data`.
    pub(crate) fn link(&self, name: &str, target: &str) {
        let fresh = self.path("fresh-link");
        symlink(target, &fresh).unwrap();
        fs::rename(fresh, self.path(name)).unwrap();
    }
}

/// Returns the time of the last write. At that time, the file's metadata does not count as settled.
pub(crate) fn written(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}
