//! TLS certificate of the server, and its reload.

use arc_swap::ArcSwap;
use proxy_tls::{
    Alpn, CertificateSource, ClientAuth, ServerTls, ServerTlsSettings, TicketKeys, TlsVersion,
};
use rustls::ServerConfig;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Interval of new keys for session tickets. Tickets are accepted for at most two intervals.
const TICKET_PERIOD: Duration = Duration::from_hours(12);

/// The active certificate and the keys of session tickets.
#[derive(Debug)]
pub(crate) struct Tls {
    source: CertificateSource,
    tickets: Arc<TicketKeys>,
    current: ArcSwap<ServerTls>,
}

impl Tls {
    /// Reads certificate chain and private key. The error has one line per fault.
    pub(crate) fn load(
        cert_file: PathBuf,
        key_file: PathBuf,
        now: SystemTime,
    ) -> Result<Self, String> {
        let tickets = TicketKeys::new(TICKET_PERIOD, now).map_err(|error| error.to_string())?;
        let source = CertificateSource {
            cert_file,
            key_file,
            held: None,
            is_obtained: false,
            ocsp_file: None,
            server_names: Vec::new(),
        };
        let current = ArcSwap::from_pointee(read(&source, &tickets, now)?);
        Ok(Self {
            source,
            tickets,
            current,
        })
    }

    /// Reads the files again. After an error, the former certificate stays active.
    pub(crate) fn reload(&self, now: SystemTime) -> Result<(), String> {
        let read = read(&self.source, &self.tickets, now)?;
        self.current.store(Arc::new(read));
        Ok(())
    }

    /// Returns the TLS settings for the next connection.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.current.load().config()
    }

    /// Creates a new ticket key if the interval has passed.
    pub(crate) fn rotate_tickets(&self, now: SystemTime) {
        if let Err(error) = self.tickets.rotate(now) {
            tracing::error!(%error, "session tickets keep their key");
        }
    }

    /// Expiry of the certificate.
    pub(crate) fn not_after(&self) -> Option<SystemTime> {
        let certificates = self.current.load().certificates();
        certificates
            .first()
            .map(|certificate| certificate.not_after)
    }

    /// Warnings for the operator, such as an imminent expiry.
    pub(crate) fn warnings(&self, now: SystemTime) -> Vec<String> {
        let warnings = self.current.load().warnings(now);
        warnings.iter().map(ToString::to_string).collect()
    }
}

fn read(
    source: &CertificateSource,
    tickets: &Arc<TicketKeys>,
    now: SystemTime,
) -> Result<ServerTls, String> {
    let settings = ServerTlsSettings {
        certificates: vec![source.clone()],
        min_version: TlsVersion::V1_2,
        max_version: TlsVersion::V1_3,
        client_auth: ClientAuth::None,
        alpn: vec![Alpn::Http1],
        challenges: None,
    };
    ServerTls::load(settings, tickets, now).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}
