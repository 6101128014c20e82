//! One connection for one check.

use crate::error::CheckError;
use crate::settings::{Check, ProbeSettings};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_util::task::AbortOnDropHandle;

/// A connection that a request can be sent by.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// Connects to `address`, with a PROXY protocol header and TLS where the settings have them.
pub(crate) async fn connect(
    address: Option<SocketAddr>,
    settings: &ProbeSettings,
) -> Result<Box<dyn Transport>, CheckError> {
    let address = address.ok_or(CheckError::NoAddress)?;
    let connected = connect_to(address, settings).await;
    connected.map_err(CheckError::Connect)
}

async fn connect_to(
    address: SocketAddr,
    settings: &ProbeSettings,
) -> io::Result<Box<dyn Transport>> {
    let mut stream = TcpStream::connect(address).await?;
    if let Some(header) = &settings.proxy_header {
        stream.write_all(header).await?;
    }
    let Some((tls, name)) = &settings.tls else {
        return Ok(Box::new(stream));
    };
    let connector = TlsConnector::from(offering(tls.config(), settings));
    Ok(Box::new(connector.connect(name.clone(), stream).await?))
}

/// `config` with the protocol of the check. The gRPC health protocol is HTTP/2, also towards an
/// upstream that is called by HTTP/1.1.
fn offering(mut config: Arc<ClientConfig>, settings: &ProbeSettings) -> Arc<ClientConfig> {
    if matches!(settings.check, Check::Grpc { .. }) && !settings.http2 {
        Arc::make_mut(&mut config).alpn_protocols = vec![b"h2".to_vec()];
    }
    config
}

/// Sends `request` by HTTP/1.1 or, with `http2`, by HTTP/2. The connection lives as long as the
/// value returned with the response.
pub(crate) async fn send(
    transport: Box<dyn Transport>,
    request: Request<Full<Bytes>>,
    http2: bool,
) -> Result<(Response<Incoming>, AbortOnDropHandle<()>), hyper::Error> {
    let io = TokioIo::new(transport);
    if http2 {
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
        let driving = tokio::spawn(async { drop(connection.await) });
        let driving = AbortOnDropHandle::new(driving);
        return Ok((sender.send_request(request).await?, driving));
    }
    let (mut sender, connection) = http1::handshake(io).await?;
    let driving = tokio::spawn(async { drop(connection.await) });
    let driving = AbortOnDropHandle::new(driving);
    Ok((sender.send_request(request).await?, driving))
}
