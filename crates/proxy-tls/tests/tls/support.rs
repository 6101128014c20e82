//! Certificate authorities, certificate files, and two TLS ends connected by buffers.

mod files;
mod handshake;
mod witness;

pub(crate) use files::{Ca, Dir, Issued, KeyKind, Leaf, written};
pub(crate) use handshake::{Pair, connect};
pub(crate) use witness::RecordingClient;

use proxy_tls::{
    Alpn, CertificateSource, ClientAuth, ClientTls, ClientTlsSettings, PlatformRoots, ServerTls,
    ServerTlsSettings, TicketKeys, TlsVersion,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time in 2027, when all certificates are valid that are not expired on purpose.
pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(500_000)
}

pub(crate) const TICKETS_EVERY: Duration = Duration::from_hours(4);

pub(crate) fn tickets() -> Arc<TicketKeys> {
    TicketKeys::new(TICKETS_EVERY, now()).unwrap()
}

pub(crate) fn server_settings(certificates: Vec<CertificateSource>) -> ServerTlsSettings {
    ServerTlsSettings {
        certificates,
        min_version: TlsVersion::V1_2,
        max_version: TlsVersion::V1_3,
        client_auth: ClientAuth::None,
        alpn: vec![Alpn::H2, Alpn::Http1],
        challenges: None,
    }
}

pub(crate) fn server(certificates: Vec<CertificateSource>) -> Arc<ServerTls> {
    load_server(server_settings(certificates))
}

pub(crate) fn load_server(settings: ServerTlsSettings) -> Arc<ServerTls> {
    Arc::new(ServerTls::load(settings, &tickets(), now()).unwrap())
}

pub(crate) fn client_settings(ca_file: &Path) -> ClientTlsSettings {
    ClientTlsSettings {
        sni: None,
        ca_file: Some(ca_file.to_owned()),
        client_certificate: None,
        min_version: TlsVersion::V1_2,
        alpn: vec![Alpn::Http1],
        verify: true,
        pins: Vec::new(),
    }
}

pub(crate) fn client(ca_file: &Path) -> Arc<ClientTls> {
    load_client(client_settings(ca_file))
}

pub(crate) fn load_client(settings: ClientTlsSettings) -> Arc<ClientTls> {
    Arc::new(ClientTls::load(settings, &PlatformRoots::new()).unwrap())
}

/// An authority with its root in a file, and a listener with certificates for these names.
pub(crate) struct Site {
    pub(crate) dir: Dir,
    pub(crate) ca: Ca,
    pub(crate) server: Arc<ServerTls>,
    pub(crate) client: Arc<ClientTls>,
}

pub(crate) fn site(leaves: &[Leaf]) -> Site {
    let dir = Dir::new();
    let ca = Ca::new("root");
    let ca_file = dir.write("ca.pem", ca.pem());
    let sources = (0..)
        .zip(leaves)
        .map(|(number, leaf)| dir.put(&format!("leaf{number}"), &ca.issue(leaf)));
    let server = server(sources.collect());
    Site {
        client: client(&ca_file),
        dir,
        ca,
        server,
    }
}
