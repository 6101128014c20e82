//! Opens a connection to a target.

use crate::error::ConnectError;
use crate::limit::ConnectionLimit;
use crate::tls_stream::UpstreamTlsStream;
use crate::upstream_stream::UpstreamStream;
use proxy_tls::ClientTls;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// How a target is called.
#[derive(Clone, Debug)]
pub struct ConnectSettings {
    /// Time for TCP and TLS together, over all addresses.
    pub timeout: Duration,
    /// With TLS, and the name its certificate must carry. None is plaintext.
    pub tls: Option<(Arc<ClientTls>, ServerName<'static>)>,
    /// Connections there may be at once over all workers. None: no limit.
    pub limit: Option<Arc<ConnectionLimit>>,
}

/// Connects to `address`, however long it takes.
pub(crate) async fn attempt(
    address: SocketAddr,
    settings: &ConnectSettings,
) -> Result<UpstreamStream, ConnectError> {
    let stream = TcpStream::connect(address)
        .await
        .map_err(ConnectError::Io)?;
    stream.set_nodelay(true).map_err(ConnectError::Io)?;
    let Some((tls, name)) = &settings.tls else {
        return Ok(UpstreamStream::Tcp(stream));
    };
    // Asked for with each connection: its files may have changed since the last one.
    let stream = TlsConnector::from(tls.config())
        .connect(name.clone(), stream)
        .await
        .map_err(ConnectError::Tls)?;
    Ok(UpstreamStream::Tls(Box::new(UpstreamTlsStream(stream))))
}
