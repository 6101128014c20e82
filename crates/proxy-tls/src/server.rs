//! TLS of a listener: from settings to a shared rustls configuration.

pub(crate) mod client_auth;
pub(crate) mod resolver;
pub(crate) mod tickets;

use crate::certificate::Certificate;
use crate::certificate::info::CertificateInfo;
use crate::challenges::CHALLENGE_PROTOCOL;
use crate::error::{TlsError, TlsWarning};
use crate::file::Digest;
use crate::provider;
use crate::server::client_auth::{ClientAuthVerdict, ClientAuthority};
use crate::server::resolver::{CertificateStore, Slot};
use crate::server::tickets::TicketKeys;
use crate::settings::{ServerTlsSettings, TlsVersion};
use arc_swap::ArcSwap;
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::{ServerConfig, ServerConnection};
use rustls_pki_types::CertificateDer;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum number of stored sessions, for TLS 1.2 clients without ticket support. The oldest is
/// evicted first.
const TLS12_SESSIONS: usize = 256;
const TLS13_TICKETS: usize = 2;
/// ALPN protocol of HTTP/3. [RFC 9114 §3.1]
const HTTP3_PROTOCOL: &[u8] = b"h3";

/// Certificates of a listener, with the rustls configuration that its connections share.
#[derive(Debug)]
pub struct ServerTls {
    settings: ServerTlsSettings,
    store: Arc<CertificateStore>,
    tickets: Arc<TicketKeys>,
    active: ArcSwap<Active>,
}

/// State that is replaced when the roots for client certificates change.
#[derive(Debug)]
struct Active {
    config: Arc<ServerConfig>,
    /// Configuration for QUIC connections.
    http3: Arc<ServerConfig>,
    authority: Option<ClientAuthority>,
}

impl Active {
    fn new(config: Arc<ServerConfig>, authority: Option<ClientAuthority>) -> Self {
        let mut http3 = ServerConfig::clone(&config);
        http3.alpn_protocols = vec![HTTP3_PROTOCOL.to_vec()];
        Self {
            config,
            http3: Arc::new(http3),
            authority,
        }
    }
}

impl ServerTls {
    /// Reads all files of the settings and builds the configuration.
    ///
    /// Expired certificates are only [warnings](Self::warnings), because a listener with one bad
    /// certificate is better than none.
    ///
    /// # Errors
    /// Every [`TlsError`] found.
    pub fn load(
        settings: ServerTlsSettings,
        tickets: &Arc<TicketKeys>,
        now: SystemTime,
    ) -> Result<Self, Vec<TlsError>> {
        let ServerTlsSettings {
            certificates,
            min_version: _, // Read by `config`.
            max_version: _,
            client_auth,
            alpn: _,
            challenges,
        } = &settings;
        let mut loaded = Vec::with_capacity(certificates.len());
        let mut faults = Vec::new();
        for source in certificates {
            let certificate = match Certificate::load(source) {
                Ok(one) => Some(Arc::new(one.without_stale_staple(now).unwrap_or(one))),
                Err(found) if source.is_awaited(&found) => None,
                Err(found) => {
                    faults.extend(found);
                    continue;
                }
            };
            loaded.push(Slot {
                source: source.clone(),
                certificate,
            });
        }
        if certificates.is_empty() {
            faults.push(TlsError::NoCertificateConfigured);
        }
        let authority = ClientAuthority::load(client_auth).unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
        if !faults.is_empty() {
            return Err(faults);
        }
        let store = Arc::new(CertificateStore::new(loaded, challenges.clone()));
        let config =
            config(&settings, authority.as_ref(), &store, tickets).map_err(|fault| vec![fault])?;
        Ok(Self {
            store,
            tickets: Arc::clone(tickets),
            active: ArcSwap::from_pointee(Active::new(config, authority)),
            settings,
        })
    }

    /// Configuration for the next connection; call it for each connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.active.load().config)
    }

    /// Configuration for the next HTTP/3 connection; call it for each connection. Does not permit
    /// 0-RTT.
    pub fn http3_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.active.load().http3)
    }

    /// Verifies the client certificate; call it once, after the handshake.
    pub fn verdict(&self, connection: &ServerConnection, now: SystemTime) -> ClientAuthVerdict {
        self.verdict_of_chain(connection.peer_certificates().unwrap_or_default(), now)
    }

    /// Verifies the client certificate, the first of `chain`. An empty chain means that the client
    /// sent none.
    pub fn verdict_of_chain(
        &self,
        chain: &[CertificateDer<'_>],
        now: SystemTime,
    ) -> ClientAuthVerdict {
        match &self.active.load().authority {
            None => ClientAuthVerdict::NotAsked,
            Some(authority) => authority.verdict(chain, now),
        }
    }

    /// Returns false if requests for `host` (without a port, in any case) need another certificate
    /// than the one served for `sni`, the connection's
    /// [`server_name`](rustls::server::ServerConnection::server_name). Such a request arrived on
    /// the wrong connection, and must be answered 421. [RFC 9110 §7.4]
    ///
    /// Returns true without SNI, if both names are equal, if the served certificate covers the
    /// host, or if the same certificate would be served for the host.
    pub fn covers(&self, sni: Option<&str>, host: &str) -> bool {
        self.store.covers(sni, host)
    }

    /// All served certificates, in configuration order.
    pub fn certificates(&self) -> Vec<CertificateInfo> {
        self.store.each(|certificate| certificate.into())
    }

    /// Certificate that is served for `host`, which must be in lower case.
    pub fn certificate_for(&self, host: &str) -> Option<CertificateInfo> {
        let certificate = self.store.shown(host)?;
        Some((&*certificate).into())
    }

    /// Warnings about the certificates at `now`.
    pub fn warnings(&self, now: SystemTime) -> Vec<TlsWarning> {
        let each = self.store.each(|certificate| certificate.warnings(now));
        each.into_iter().flatten().collect()
    }

    /// The settings that it was loaded from; a reload with equal settings keeps this value.
    pub fn settings(&self) -> &ServerTlsSettings {
        &self.settings
    }

    /// Digest of the roots for client certificates; `None` if none are requested.
    pub fn client_authority(&self) -> Option<Digest> {
        let active = self.active.load();
        active.authority.as_ref().map(ClientAuthority::digest)
    }

    pub(crate) fn store(&self) -> &Arc<CertificateStore> {
        &self.store
    }

    pub(crate) fn ca_file(&self) -> Option<&PathBuf> {
        let (ca_file, _required) = self.settings.client_auth.demand()?;
        Some(ca_file)
    }

    /// Reads the roots for client certificates again; returns true if changed contents are now in
    /// use.
    pub(crate) fn reload_authority(&self) -> Result<bool, TlsError> {
        let authority = ClientAuthority::load(&self.settings.client_auth)?;
        if authority.as_ref().map(ClientAuthority::digest) == self.client_authority() {
            return Ok(false);
        }
        let config = config(
            &self.settings,
            authority.as_ref(),
            &self.store,
            &self.tickets,
        )?;
        self.active.store(Arc::new(Active::new(config, authority)));
        Ok(true)
    }
}

fn config(
    settings: &ServerTlsSettings,
    authority: Option<&ClientAuthority>,
    store: &Arc<CertificateStore>,
    tickets: &Arc<TicketKeys>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let versioned = ServerConfig::builder_with_provider(provider::intermediate())
        .with_protocol_versions(settings.min_version.up_to(settings.max_version))?;
    let verified = match authority {
        None => versioned.with_no_client_auth(),
        Some(authority) => versioned.with_client_cert_verifier(authority.lenient()),
    };
    let mut config = verified.with_cert_resolver(Arc::clone(store) as _);
    config.alpn_protocols = settings
        .alpn
        .iter()
        .flat_map(|protocol| protocol.accepted())
        .map(|name| name.to_vec())
        .collect();
    if settings.challenges.is_some() {
        // Negotiated with validating authorities, which offer no other protocol.
        config.alpn_protocols.push(CHALLENGE_PROTOCOL.to_vec());
    }
    config.ignore_client_order = false;
    config.max_early_data_size = 0;
    config.send_half_rtt_data = false;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    // A resumed session keeps the original session's client certificate or lack of one, and may
    // come from another listener. Therefore resumption is disabled if client certificates are
    // requested.
    if authority.is_none() {
        config.ticketer = Arc::clone(tickets) as _;
        config.send_tls13_tickets = TLS13_TICKETS;
        if settings.min_version == TlsVersion::V1_2 {
            config.session_storage = ServerSessionMemoryCache::new(TLS12_SESSIONS);
        }
    }
    Ok(Arc::new(config))
}
