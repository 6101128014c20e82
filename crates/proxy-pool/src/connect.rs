//! Opens a connection to a target.

use crate::fault::ConnectFault;
use crate::limit::ConnectionLimit;
use crate::secure::Secure;
use crate::transport::Transport;
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
) -> Result<Transport, ConnectFault> {
    let stream = TcpStream::connect(address)
        .await
        .map_err(ConnectFault::Io)?;
    stream.set_nodelay(true).map_err(ConnectFault::Io)?;
    let Some((tls, name)) = &settings.tls else {
        return Ok(Transport::Tcp(stream));
    };
    // Asked for with each connection: its files may have changed since the last one.
    let stream = TlsConnector::from(tls.config())
        .connect(name.clone(), stream)
        .await
        .map_err(ConnectFault::Tls)?;
    Ok(Transport::Tls(Box::new(Secure(stream))))
}
