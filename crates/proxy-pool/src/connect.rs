//! Opening of a connection to a target.

use crate::error::ConnectError;
use crate::limit::ConnectionLimit;
use crate::transport::{UpstreamStream, UpstreamTlsStream};
use proxy_tls::ClientTls;
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// Settings of connections to a target.
#[derive(Clone, Debug)]
pub struct ConnectSettings {
    /// Maximum time for TCP and TLS together, over all addresses.
    pub timeout: Duration,
    /// TLS, and the name to verify; `None` for plaintext.
    pub tls: Option<(Arc<ClientTls>, ServerName<'static>)>,
    /// Limit of connections over all workers; `None` is unlimited.
    pub limit: Option<Arc<ConnectionLimit>>,
    /// The PROXY protocol header at the beginning of a connection; `None` for a target without one.
    pub proxy_header: Option<Arc<[u8]>>,
}

/// Connects to `address` once, without a time limit: TCP and, according to `settings`, a PROXY
/// protocol header and TLS.
///
/// # Errors
/// [`ConnectError`] of this attempt.
pub async fn connect_once(
    address: SocketAddr,
    settings: &ConnectSettings,
) -> Result<UpstreamStream, ConnectError> {
    let mut stream = TcpStream::connect(address).await.map_err(io_error)?;
    stream.set_nodelay(true).map_err(ConnectError::Io)?;
    if let Some(header) = &settings.proxy_header {
        stream.write_all(header).await.map_err(ConnectError::Io)?;
    }
    let Some((tls, name)) = &settings.tls else {
        return Ok(UpstreamStream::Tcp(stream));
    };
    // Read again for each connection, because its files may have changed.
    let stream = TlsConnector::from(tls.config())
        .connect(name.clone(), stream)
        .await
        .map_err(ConnectError::Tls)?;
    Ok(UpstreamStream::Tls(Box::new(UpstreamTlsStream(stream))))
}

/// `EMFILE` and `ENFILE` are faults of the proxy, not of the target.
fn io_error(error: io::Error) -> ConnectError {
    let descriptors = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    match error.raw_os_error() {
        Some(code) if descriptors.contains(&code) => ConnectError::NoDescriptor(error),
        Some(_) | None => ConnectError::Io(error),
    }
}
