//! TLS of an upstream: from settings to a shared rustls configuration.

pub(crate) mod listed;
pub(crate) mod own_listener;
pub(crate) mod pinned;

use crate::certificate::info::CertificateInfo;
use crate::certificate::{Certificate, SourceContents};
use crate::error::{TlsError, TlsWarning};
use crate::file::{Contents, Digest, digest};
use crate::provider;
use crate::roots::PlatformRoots;
use crate::roots::{self, pem};
use crate::settings::{Alpn, CertificateSource, ClientTlsSettings, TlsVersion};
use arc_swap::ArcSwap;
use listed::ListedVerifier;
use pinned::PinnedVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum number of stored sessions per upstream: eight for each of 32 server names. The oldest
/// name is evicted first.
const MAX_SESSIONS: usize = 32 * 8;

/// Roots and client certificate of an upstream, with the rustls configuration that its connections
/// share.
///
/// Connections made with it are never in plaintext.
#[derive(Debug)]
pub struct ClientTls {
    settings: ClientTlsSettings,
    /// The platform's roots; present if certificates are verified and the settings have no
    /// `ca_file`.
    platform: Option<Arc<RootCertStore>>,
    active: ArcSwap<Active>,
}

/// State that is replaced as a whole when a file changes, which also drops sessions made with the
/// old roots or certificate.
#[derive(Debug)]
struct Active {
    config: Arc<ClientConfig>,
    certificate: Option<Certificate>,
    digest: Digest,
}

/// Contents of the upstream's files.
#[derive(Debug)]
struct FileContents {
    ca: Option<Contents>,
    certificate: Option<SourceContents>,
}

/// Error of a text that is neither a host name nor an IP address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is neither a host name nor an IP address")]
pub struct BadServerName {
    /// The invalid text.
    pub name: String,
}

impl ClientTls {
    /// Reads all files of the settings and builds the configuration. Uses `platform` only if
    /// certificates are verified and the settings have no `ca_file`.
    ///
    /// # Errors
    /// Every [`TlsError`] found.
    pub fn load(
        settings: ClientTlsSettings,
        platform: &PlatformRoots,
    ) -> Result<Self, Vec<TlsError>> {
        let platform = match settings.ca_file {
            Some(_) => None,
            None if !settings.verify => None,
            None => Some(platform.get().map_err(|fault| vec![fault])?),
        };
        let contents = FileContents::read(&settings)?;
        let active = activate(&settings, platform.as_ref(), &contents);
        Ok(Self {
            active: ArcSwap::from_pointee(active.map_err(|fault| vec![fault])?),
            platform,
            settings,
        })
    }

    /// Configuration for the next connection; call it for each connection.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.active.load().config)
    }

    /// Server name for SNI and verification: the configured one, or else the target's host.
    ///
    /// # Errors
    /// [`BadServerName`] if the target's host is neither a name nor an IP address.
    pub fn server_name(&self, target_host: &str) -> Result<ServerName<'static>, BadServerName> {
        server_name(self.settings.sni.as_ref(), target_host)
    }

    /// The client certificate, if there is one.
    pub fn certificates(&self) -> Vec<CertificateInfo> {
        let active = self.active.load();
        active
            .certificate
            .iter()
            .map(CertificateInfo::from)
            .collect()
    }

    /// Warnings about the client certificate at `now`.
    pub fn warnings(&self, now: SystemTime) -> Vec<TlsWarning> {
        let active = self.active.load();
        let warnings = active.certificate.iter().flat_map(|one| one.warnings(now));
        // A client certificate is identified by its subject, so it needs no host name.
        warnings
            .filter(|warning| !matches!(warning, TlsWarning::Nameless { .. }))
            .collect()
    }

    /// The settings that it was loaded from; a reload with equal settings keeps this value.
    pub fn settings(&self) -> &ClientTlsSettings {
        &self.settings
    }

    /// The files that it was loaded from.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = self.settings.ca_file.iter().cloned().collect();
        if let Some(source) = identity(self.settings.client_certificate.as_ref()) {
            files.extend([source.cert_file, source.key_file]);
        }
        files
    }

    /// Reads the files again; returns true if changed contents are now in use.
    pub(crate) fn reload(&self, now: SystemTime) -> Result<bool, Vec<TlsError>> {
        let contents = FileContents::read(&self.settings)?;
        let current = self.active.load();
        if contents.digest() == current.digest {
            return Ok(false);
        }
        let next = activate(&self.settings, self.platform.as_ref(), &contents)
            .map_err(|fault| vec![fault])?;
        if let (Some(new), Some(old)) = (&next.certificate, &current.certificate)
            && let Some(fault) = new.worse_than(old, now)
        {
            return Err(vec![fault]);
        }
        self.active.store(Arc::new(next));
        Ok(true)
    }
}

/// Server name for SNI and verification: `sni`, or else the target's host, which may be an IP
/// address with or without brackets.
///
/// # Errors
/// [`BadServerName`] if the target's host is neither a name nor an IP address.
pub fn server_name(
    sni: Option<&ServerName<'static>>,
    target_host: &str,
) -> Result<ServerName<'static>, BadServerName> {
    if let Some(name) = sni {
        return Ok(name.clone());
    }
    let bare = target_host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(target_host);
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    ServerName::try_from(bare.to_owned()).map_err(|_| BadServerName {
        name: target_host.to_owned(),
    })
}

impl FileContents {
    fn read(settings: &ClientTlsSettings) -> Result<Self, Vec<TlsError>> {
        let ca = settings.ca_file.as_deref().map(Contents::read).transpose();
        let identity = identity(settings.client_certificate.as_ref());
        let certificate = identity.as_ref().map(SourceContents::read).transpose();
        match (ca, certificate) {
            (Ok(ca), Ok(certificate)) => Ok(Self { ca, certificate }),
            (ca, certificate) => {
                let mut faults: Vec<_> = ca.err().into_iter().collect();
                faults.extend(certificate.err().into_iter().flatten());
                Err(faults)
            }
        }
    }

    fn digest(&self) -> Digest {
        let certificate = self.certificate.iter().flat_map(SourceContents::parts);
        digest(std::iter::once(self.ca.as_ref()).chain(certificate))
    }
}

/// The client certificate, without settings that only servers use.
fn identity(configured: Option<&CertificateSource>) -> Option<CertificateSource> {
    configured.map(|source| CertificateSource {
        ocsp_file: None,
        server_names: Vec::new(),
        ..source.clone()
    })
}

fn activate(
    settings: &ClientTlsSettings,
    platform: Option<&Arc<RootCertStore>>,
    contents: &FileContents,
) -> Result<Active, TlsError> {
    let ClientTlsSettings {
        sni: _, // Read by `ClientTls::server_name` for each connection.
        ca_file,
        client_certificate,
        min_version,
        alpn,
        verify,
        pins,
    } = settings;
    let chain = if *verify {
        let (trusted, listed) = match (ca_file, &contents.ca, platform) {
            (Some(file), Some(ca), _) => (roots::from_pem(file, ca)?, pem::certificates(file, ca)?),
            (_, _, Some(platform)) => (Arc::clone(platform), Vec::new()),
            (_, _, None) => return Err(TlsError::NoPlatformRoots),
        };
        Some(verifier(trusted, listed)?)
    } else {
        None
    };
    let verifier: Arc<dyn ServerCertVerifier> = match chain {
        Some(chain) if pins.is_empty() => Arc::new(chain),
        chain => Arc::new(PinnedVerifier {
            chain,
            pins: pins.clone(),
            provider: provider::intermediate(),
        }),
    };
    let certificate = match (identity(client_certificate.as_ref()), &contents.certificate) {
        (Some(source), Some(contents)) => Some(Certificate::parse(&source, contents)?),
        (_, _) => None,
    };
    Ok(Active {
        config: config(verifier, certificate.as_ref(), *min_version, alpn)?,
        certificate,
        digest: contents.digest(),
    })
}

fn verifier(
    trusted: Arc<RootCertStore>,
    listed: Vec<CertificateDer<'static>>,
) -> Result<ListedVerifier, TlsError> {
    let webpki = WebPkiServerVerifier::builder_with_provider(trusted, provider::intermediate());
    let webpki = webpki.build().map_err(|error| TlsError::Refused {
        reason: error.to_string(),
    })?;
    Ok(ListedVerifier { webpki, listed })
}

fn config(
    verifier: Arc<dyn ServerCertVerifier>,
    certificate: Option<&Certificate>,
    min_version: TlsVersion,
    alpn: &[Alpn],
) -> Result<Arc<ClientConfig>, TlsError> {
    let trusting = ClientConfig::builder_with_provider(provider::intermediate())
        .with_protocol_versions(min_version.and_newer())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match certificate {
        None => trusting.with_no_client_auth(),
        Some(certificate) => trusting.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(
            Arc::clone(certificate.key()),
        ))),
    };
    config.alpn_protocols = alpn.iter().map(|one| one.offered().to_vec()).collect();
    config.resumption = Resumption::in_memory_sessions(MAX_SESSIONS);
    config.enable_early_data = false;
    Ok(Arc::new(config))
}
