//! Certificates with their keys and OCSP responses, loaded from files.

pub(crate) mod info;
pub(crate) mod leaf;
pub(crate) mod staple;

use crate::certificate::leaf::Leaf;
use crate::certificate::staple::Staple;
use crate::error::{TlsError, TlsWarning};
use crate::file::{Contents, Digest, digest};
use crate::roots::pem;
use crate::settings::{CertificateSource, HeldCertificate};
use crate::{expiry, provider};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, SignatureAlgorithm, SignatureScheme};
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A certificate chain with its private key.
#[derive(Clone)]
pub(crate) struct Certificate {
    source: CertificateSource,
    digest: Digest,
    key: Arc<CertifiedKey>,
    leaf: Leaf,
    staple: Option<Staple>,
}

/// Contents of a certificate's files.
#[derive(Debug)]
pub(crate) struct SourceContents {
    cert: Contents,
    key: Contents,
    ocsp: Option<Contents>,
}

impl SourceContents {
    /// Reads all files; returns an error for each unreadable one.
    pub(crate) fn read(source: &CertificateSource) -> Result<Self, Vec<TlsError>> {
        let CertificateSource {
            cert_file,
            key_file,
            held,
            is_obtained: _, // Read when they are missing.
            ocsp_file,
            server_names: _, // Read by the listener's index of certificates.
        } = source;
        let (cert, key) = match held {
            Some(HeldCertificate { chain_pem, key_pem }) => {
                (Ok(Contents::held(chain_pem)), Ok(Contents::held(key_pem)))
            }
            None => (Contents::read(cert_file), Contents::read(key_file)),
        };
        let ocsp = ocsp_file.as_deref().map(Contents::read).transpose();
        match (cert, key, ocsp) {
            (Ok(cert), Ok(key), Ok(ocsp)) => Ok(Self { cert, key, ocsp }),
            (cert, key, ocsp) => Err([cert.err(), key.err(), ocsp.err()]
                .into_iter()
                .flatten()
                .collect()),
        }
    }

    pub(crate) fn parts(&self) -> [Option<&Contents>; 3] {
        [Some(&self.cert), Some(&self.key), self.ocsp.as_ref()]
    }

    pub(crate) fn digest(&self) -> Digest {
        digest(self.parts())
    }
}

impl Certificate {
    /// Reads and validates all files of `source`.
    pub(crate) fn load(source: &CertificateSource) -> Result<Self, Vec<TlsError>> {
        let contents = SourceContents::read(source)?;
        Self::parse(source, &contents).map_err(|fault| vec![fault])
    }

    /// Parses the files; checks that key and OCSP response belong to the chain's leaf.
    pub(crate) fn parse(
        source: &CertificateSource,
        contents: &SourceContents,
    ) -> Result<Self, TlsError> {
        let CertificateSource {
            cert_file,
            key_file,
            held: _, // Its contents have been read.
            is_obtained: _,
            ocsp_file,
            server_names: _, // Read by the listener's index of certificates.
        } = source;
        let chain = pem::certificates(cert_file, &contents.cert)?;
        let leaf = leaf(&chain).map_err(|position| TlsError::BadCertificate {
            file: cert_file.clone(),
            position,
        })?;
        let key = provider::intermediate()
            .key_provider
            .load_private_key(pem::private_key(key_file, &contents.key)?)
            .map_err(|_| TlsError::BadKey {
                file: key_file.clone(),
            })?;
        let staple = match (ocsp_file, &contents.ocsp) {
            (Some(file), Some(ocsp)) => Some(staple(file, ocsp, &leaf)?),
            (_, _) => None,
        };
        let mut key = CertifiedKey::new(chain, key);
        match key.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(_) => {
                return Err(TlsError::KeyMismatch {
                    cert_file: cert_file.clone(),
                    key_file: key_file.clone(),
                });
            }
        }
        key.ocsp = staple.as_ref().map(|staple| staple.der.clone());
        Ok(Self {
            source: source.clone(),
            digest: contents.digest(),
            key: Arc::new(key),
            leaf,
            staple,
        })
    }

    pub(crate) fn source(&self) -> &CertificateSource {
        &self.source
    }

    pub(crate) fn file(&self) -> &PathBuf {
        &self.source.cert_file
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    pub(crate) fn key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    pub(crate) fn leaf(&self) -> &Leaf {
        &self.leaf
    }

    /// Returns true if the key can sign with one of these schemes.
    pub(crate) fn signs_with(&self, schemes: &[SignatureScheme]) -> bool {
        self.key.key.choose_scheme(schemes).is_some()
    }

    /// Preference among certificates for the same name: ECDSA signs and verifies in a fraction of
    /// the time of RSA.
    pub(crate) fn rank(&self) -> u8 {
        let algorithm = self.key.key.algorithm();
        if algorithm == SignatureAlgorithm::ECDSA {
            0
        } else if algorithm == SignatureAlgorithm::ED25519 {
            1
        } else {
            2
        }
    }

    /// Reason why this certificate must not replace `current` at `now`: clients would refuse this
    /// one, but accept the current one.
    pub(crate) fn worse_than(&self, current: &Self, now: SystemTime) -> Option<TlsError> {
        if current.out_of_date(now).is_some() {
            return None;
        }
        self.out_of_date(now)
    }

    fn out_of_date(&self, now: SystemTime) -> Option<TlsError> {
        let file = self.file().clone();
        let Leaf {
            not_before,
            not_after,
            ..
        } = self.leaf;
        if not_after < now {
            return Some(TlsError::Expired { file, not_after });
        }
        (now < not_before).then_some(TlsError::NotYetValid { file, not_before })
    }

    /// The certificate without its stapled OCSP response, if that has become stale.
    pub(crate) fn without_stale_staple(&self, now: SystemTime) -> Option<Self> {
        self.key.ocsp.as_ref()?;
        self.staple.as_ref()?.stale_since(now)?;
        let mut key = CertifiedKey::clone(&self.key);
        key.ocsp = None;
        Some(Self {
            key: Arc::new(key),
            ..self.clone()
        })
    }

    /// Warnings about this certificate at `now`.
    pub(crate) fn warnings(&self, now: SystemTime) -> Vec<TlsWarning> {
        let mut warnings = Vec::new();
        let file = self.file();
        let Leaf {
            not_before,
            not_after,
            ..
        } = self.leaf;
        if self.leaf.names.is_empty() {
            warnings.push(TlsWarning::Nameless { file: file.clone() });
        }
        if now < not_before {
            let file = file.clone();
            warnings.push(TlsWarning::NotYetValid { file, not_before });
        }
        warnings.extend(expiry::warning(file, not_after, now));
        let stale = self.staple.as_ref().and_then(|old| old.stale_since(now));
        if let (Some(file), Some(next_update)) = (self.source.ocsp_file.clone(), stale) {
            warnings.push(TlsWarning::StapleStale { file, next_update });
        }
        warnings
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("source", &self.source)
            .field("names", &self.leaf.names)
            .finish_non_exhaustive()
    }
}

/// Parses the first certificate of a chain. On failure returns the position of the certificate that
/// is not X.509.
fn leaf(chain: &[CertificateDer<'static>]) -> Result<Leaf, usize> {
    let mut first = None;
    for (position, der) in (1_usize..).zip(chain) {
        let facts = Leaf::parse(der).ok_or(position)?;
        first.get_or_insert(facts);
    }
    first.ok_or(1)
}

fn staple(file: &Path, ocsp: &Contents, leaf: &Leaf) -> Result<Staple, TlsError> {
    Staple::parse(ocsp.bytes(), &leaf.serial).map_err(|reason| TlsError::BadStaple {
        file: file.to_owned(),
        reason,
    })
}
