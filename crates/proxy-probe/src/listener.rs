//! One request to a listener of this machine, sent like a client's.

use crate::connection::{Transport, send};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use rustls_pki_types::{CertificateDer, ServerName};
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;

/// First bytes of an answer's body that are kept.
const MAX_KEPT_BYTES: usize = 64 * 1024;
/// Bytes of an answer's body that are read.
const MAX_READ_BYTES: usize = 1024 * 1024;
/// A PROXY protocol header of a connection without a client of its own.
const PROXY_HEADER: &[u8] = b"PROXY UNKNOWN\r\n";
const H2: &[u8] = b"h2";

/// The socket of a listener.
#[derive(Clone, Debug)]
pub enum ListenerSocket {
    /// An address with a port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// One end of a pair of connected sockets, for one request; the listener has the other end.
    Connected(Arc<net::UnixStream>),
}

/// A request to a listener.
#[derive(Debug)]
pub struct ListenerRequest {
    /// The listener's socket.
    pub socket: ListenerSocket,
    /// TLS, and the name that the certificate must carry; `None` for plaintext.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// HTTP/2 rather than HTTP/1.1.
    pub http2: bool,
    /// True if the connection begins with a PROXY protocol header.
    pub proxy_header: bool,
    /// The request: with an absolute URI by HTTP/2, with a path and `Host` by HTTP/1.1.
    pub request: Request<Full<Bytes>>,
}

/// The answer of a listener.
#[derive(Debug)]
pub struct ListenerAnswer {
    /// Status of the response.
    pub status: StatusCode,
    /// Header fields of the response.
    pub headers: HeaderMap,
    /// The first bytes of the body, at most 64 KiB.
    pub body: Vec<u8>,
    /// The leaf that the listener showed; `None` without TLS.
    pub leaf: Option<CertificateDer<'static>>,
    /// Elapsed at the first byte of the body, or at the end of an empty one.
    pub first_byte: Duration,
    /// Elapsed at the end of the body, or after its first MiB.
    pub total: Duration,
}

/// Error of a request without an answer.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// The listener does not accept the connection.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// The handshake fails, such as for a certificate of another name.
    #[error("no TLS: {0}")]
    Tls(#[source] io::Error),
    /// The listener supports HTTP/1.1 only.
    #[error("the listener does not offer HTTP/2")]
    NoHttp2,
    /// The exchange is incomplete.
    #[error("incomplete answer: {}", innermost(.0))]
    Exchange(#[from] hyper::Error),
}

/// Sends `request` and reads the answer; `elapsed` is the time since the start. The caller bounds the time.
///
/// # Errors
/// [`ListenerError`] if the listener cannot be reached, or its answer is not HTTP.
pub async fn ask_listener(
    request: ListenerRequest,
    elapsed: impl Fn() -> Duration,
) -> Result<ListenerAnswer, ListenerError> {
    let ListenerRequest {
        socket,
        tls,
        http2,
        proxy_header,
        request,
    } = request;
    let stream = connect(&socket, proxy_header).await;
    let stream = stream.map_err(ListenerError::Connect)?;
    let (transport, leaf) = match tls {
        None => (stream, None),
        Some((config, name)) => {
            let connected = TlsConnector::from(config).connect(name, stream).await;
            let connected = connected.map_err(ListenerError::Tls)?;
            let (_, session) = connected.get_ref();
            if http2 && session.alpn_protocol() != Some(H2) {
                return Err(ListenerError::NoHttp2);
            }
            let chain = session.peer_certificates().unwrap_or_default();
            let leaf = chain.first().map(|leaf| leaf.clone().into_owned());
            (Box::new(connected) as Box<dyn Transport>, leaf)
        }
    };
    let (response, _connection) = send(transport, request, http2).await?;
    let (head, body) = response.into_parts();
    let (body, first_byte) = read(body, &elapsed).await?;
    Ok(ListenerAnswer {
        status: head.status,
        headers: head.headers,
        body,
        leaf,
        first_byte,
        total: elapsed(),
    })
}

async fn connect(socket: &ListenerSocket, proxy_header: bool) -> io::Result<Box<dyn Transport>> {
    let mut stream: Box<dyn Transport> = match socket {
        ListenerSocket::Tcp(address) => Box::new(TcpStream::connect(address).await?),
        ListenerSocket::Unix(path) => Box::new(UnixStream::connect(path).await?),
        ListenerSocket::Connected(stream) => {
            let stream = stream.try_clone()?;
            stream.set_nonblocking(true)?;
            Box::new(UnixStream::from_std(stream)?)
        }
    };
    if proxy_header {
        stream.write_all(PROXY_HEADER).await?;
    }
    Ok(stream)
}

/// The first bytes of the body, and the arrival time of its first byte.
async fn read(
    mut body: Incoming,
    elapsed: &impl Fn() -> Duration,
) -> Result<(Vec<u8>, Duration), hyper::Error> {
    let (mut kept, mut first_byte, mut length) = (Vec::new(), None, 0_usize);
    while let Some(frame) = body.frame().await.transpose()? {
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if !data.is_empty() {
            first_byte.get_or_insert_with(elapsed);
        }
        let room = MAX_KEPT_BYTES.saturating_sub(kept.len());
        kept.extend(data.iter().take(room));
        length = length.saturating_add(data.len());
        if MAX_READ_BYTES <= length {
            break;
        }
    }
    Ok((kept, first_byte.unwrap_or_else(elapsed)))
}

fn innermost(error: &hyper::Error) -> String {
    let mut reason: &dyn Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}
