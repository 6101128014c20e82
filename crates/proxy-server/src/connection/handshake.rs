//! The TLS handshake of a client: bounded in time, counted, and logged when it fails.

use crate::connection::client_socket::ClientSocket;
use crate::connection::client_stream::ClientStream;
use crate::connection::limit_problem::limit_problem;
use crate::connection::linger;
use crate::connection::negotiated::{HttpVersion, Negotiated};
use crate::connection::settings::ConnectionSettings;
use crate::connection::timeout::ConnectionDeadline;
use crate::connection::tls_stream::ClientTlsStream;
use bytes::Bytes;
use proxy_clock::Timer;
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::LimitReached;
use proxy_pipeline::{
    ConnectionInfo, TlsSession, UnreadRequest, Worker, log_connection_problem, refuse_unread,
    timeout_problem,
};
use proxy_tls::{CHALLENGE_PROTOCOL, ServerTls};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ProtocolVersion;

/// The reason why there is no TLS connection.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The client closed without sending a byte, as port checks do.
    NothingSent,
    /// The client sends HTTP without TLS.
    Plaintext(ClientSocket),
    /// The handshake failed.
    Io(io::Error),
    /// The PROXY protocol header is missing or malformed.
    BadProxyHeader(&'static str),
    /// The client in the PROXY protocol header has reached its connection limit. The response is
    /// written to the socket, if there is one.
    TooManyOfClient(LimitReached, Option<ClientSocket>),
    /// The handshake exceeded this time.
    TimedOut(Duration),
    /// A connection of a certificate authority that validated a host; its protocol has no response.
    Validated,
}

/// Performs the handshake with the client of `stream`, which has sent `first`, still unread.
pub(crate) async fn accept_tls(
    worker: &Worker,
    tls: &Arc<ServerTls>,
    stream: ClientSocket,
    first: u8,
) -> Result<Negotiated, HandshakeError> {
    // The first letter of a method; a handshake record begins with 0x16.
    if first.is_ascii_uppercase() {
        return Err(HandshakeError::Plaintext(stream));
    }
    let accepted = TlsAcceptor::from(tls.config()).accept(stream).await;
    let stream = accepted.map_err(HandshakeError::Io)?;
    worker.metrics.handshakes_completed.add(1);
    let (_, connection) = stream.get_ref();
    if connection.alpn_protocol() == Some(CHALLENGE_PROTOCOL) {
        return Err(HandshakeError::Validated);
    }
    let now = UNIX_EPOCH + worker.time.unix(worker.time.elapsed());
    let session = TlsSession {
        server: Arc::clone(tls),
        version: connection.protocol_version().and_then(version_name),
        server_name: connection.server_name().map(Into::into),
        verdict: tls.verdict(connection, now),
    };
    let version = match connection.alpn_protocol() {
        Some(b"h2") => HttpVersion::Http2,
        Some(_) | None => HttpVersion::Http1,
    };
    Ok(Negotiated {
        version,
        session: Some(session),
        server_name: None,
        transport: ClientStream::Tls(Box::new(ClientTlsStream::new(stream))),
        early: Bytes::new(),
    })
}

fn version_name(version: ProtocolVersion) -> Option<&'static str> {
    if version == ProtocolVersion::TLSv1_3 {
        return Some("1.3");
    }
    (version == ProtocolVersion::TLSv1_2).then_some("1.2")
}

/// Makes drop reset the connection. If the socket refuses the option, drop closes it in order.
fn reset(stream: &ClientSocket) {
    stream.abort().unwrap_or_default();
}

impl HandshakeError {
    /// Converts the error for a listener that relays connections: it cannot send a response, so a
    /// refused connection is reset.
    fn without_answer(self) -> Self {
        match self {
            Self::Plaintext(stream) => {
                reset(&stream);
                let message = "no tls on a tls listener";
                Self::Io(io::Error::new(io::ErrorKind::InvalidData, message))
            }
            Self::TooManyOfClient(full, stream) => {
                stream.iter().for_each(reset);
                Self::TooManyOfClient(full, None)
            }
            Self::NothingSent
            | Self::Io(_)
            | Self::BadProxyHeader(_)
            | Self::TimedOut(_)
            | Self::Validated => self,
        }
    }

    /// Counts and logs the failure; a client that sends HTTP gets an HTTP response.
    pub(crate) async fn report(
        self,
        worker: &Rc<Worker>,
        client: &Rc<ConnectionInfo>,
        settings: &ConnectionSettings,
        timeout: ConnectionDeadline<'_>,
    ) {
        let error = if settings.protocol.is_relayed() {
            self.without_answer()
        } else {
            self
        };
        let problem = match error {
            Self::NothingSent | Self::Validated => return,
            Self::TimedOut(time) => timeout_problem(Timer::Handshake, time),
            Self::BadProxyHeader(why) => {
                worker.metrics.proxy_headers_failed.add(1);
                let problem = Problem::new(Reason::BadProxyProtocol, Detail::text(why));
                return log_connection_problem(worker, client, &problem);
            }
            Self::TooManyOfClient(full, stream) => {
                let problem = limit_problem(Reason::ClientConnectionLimit, full);
                let Some(stream) = stream else {
                    return log_connection_problem(worker, client, &problem);
                };
                let answer = refuse_unread(worker, client, problem, UnreadRequest::default());
                let mut transport = ClientStream::Plain(stream);
                linger::answer(
                    &mut transport,
                    &answer.bytes,
                    settings.write_timeout,
                    timeout,
                )
                .await;
                return;
            }
            Self::Io(error) => {
                Problem::new(Reason::ClientTlsFailed, Detail::text(error.to_string()))
            }
            Self::Plaintext(stream) => {
                let detail = Detail::text("http without tls on a tls listener");
                let problem = Problem::new(Reason::ClientTlsFailed, detail);
                let answer = refuse_unread(worker, client, problem, UnreadRequest::default());
                let mut transport = ClientStream::Plain(stream);
                worker.metrics.handshakes_failed.add(1);
                linger::answer(
                    &mut transport,
                    &answer.bytes,
                    settings.write_timeout,
                    timeout,
                )
                .await;
                return;
            }
        };
        worker.metrics.handshakes_failed.add(1);
        log_connection_problem(worker, client, &problem);
    }
}
