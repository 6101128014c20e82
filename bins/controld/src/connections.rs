//! Connections of clients: accept, TLS, requests, and draining at shutdown.

mod parse_errors;
mod peers;

use crate::tls::Tls;
use crate::trust::TrustedProxies;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Request, Response, header};
use control_app::metric;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use metrics::{counter, gauge};
use parse_errors::ParseErrors;
use peers::{PeerConnection, Peers};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// Maximum duration of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time from the end of the handshake to the first request.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time between two requests, and for receiving a head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(90);
/// Maximum time for requests in progress at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// `Strict-Transport-Security` (RFC 6797): browsers must use TLS for this host for a year. Excludes
/// subdomains, which may have other owners.
const TRANSPORT_SECURITY: HeaderValue = HeaderValue::from_static("max-age=31536000");
/// Delay after a failed accept, for example with too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// State shared by all connections.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) router: Router,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) trusted: TrustedProxies,
    /// Additional routes for clients on this machine, with `/metrics`; `None` if metrics have their
    /// own address.
    pub(crate) local: Option<Router>,
    /// Maximum number of open connections.
    pub(crate) max_open: usize,
}

impl Connections {
    /// Serves until `stopped` completes, then waits for requests in progress.
    pub(crate) async fn serve(self, listener: TcpListener, stopped: impl Future<Output = ()>) {
        let permits = Arc::new(Semaphore::new(self.max_open));
        let mut peers = Peers::new(self.max_open);
        let own = Arc::new(self);
        let graceful = GracefulShutdown::new();
        let mut stopped = std::pin::pin!(stopped);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stopped => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let admitted = own.admit(peer.ip(), &permits, &mut peers);
                    let Some((permit, admitted)) = admitted else {
                        counter!(metric::CONNECTIONS_REFUSED).increment(1);
                        continue;
                    };
                    let (own, watcher) = (Arc::clone(&own), graceful.watcher());
                    tokio::spawn(async move {
                        own.serve_stream(stream, peer, &admitted, watcher).await;
                        drop(permit);
                    });
                }
                Err(error) => pause(&error).await,
            }
        }
        drop(listener);
        drain(graceful).await;
    }

    /// Reserves a place for a connection of `peer`; `None` if it must be closed.
    fn admit(
        &self,
        peer: IpAddr,
        permits: &Arc<Semaphore>,
        peers: &mut Peers,
    ) -> Option<(OwnedSemaphorePermit, PeerConnection)> {
        // Without TLS, credentials would be readable on the network.
        if self.tls.is_none() && !self.trusted.may_speak_plain(peer) {
            return None;
        }
        // A balancer's connections are those of many clients, so the limit per address does not
        // apply.
        let free = if self.trusted.holds(peer) {
            usize::MAX
        } else {
            permits.available_permits()
        };
        // Above the limit, the client retries later, or connects to another replica.
        let permit = Arc::clone(permits).try_acquire_owned().ok()?;
        Some((permit, peers.admit(peer, free)?))
    }

    /// Serves a connection, with a TLS handshake first if there is a certificate.
    async fn serve_stream(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        admitted: &PeerConnection,
        watcher: Watcher,
    ) {
        // Responses are small and written at once, so they need not wait for more data.
        stream.set_nodelay(true).ok();
        let open = gauge!(metric::CONNECTIONS_OPEN);
        open.increment(1);
        match &self.tls {
            None => self.serve_requests(stream, peer, admitted, watcher).await,
            Some(tls) => {
                let acceptor = TlsAcceptor::from(tls.config());
                match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        self.serve_requests(stream, peer, admitted, watcher).await;
                    }
                    Ok(Err(_)) | Err(_) => {
                        counter!(metric::TLS_HANDSHAKE_FAILURES).increment(1);
                    }
                }
            }
        }
        open.decrement(1);
    }

    /// Serves requests until the connection ends, or times out without a first one.
    async fn serve_requests<S>(
        &self,
        stream: S,
        peer: SocketAddr,
        admitted: &PeerConnection,
        watcher: Watcher,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let service = service_fn(|request| {
            admitted.speak();
            self.respond(request, peer)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(ParseErrors::new(stream)), service);
        let mut connection = std::pin::pin!(watcher.watch(connection));
        let silence = async {
            if timeout(FIRST_REQUEST_TIMEOUT, admitted.spoken())
                .await
                .is_ok()
            {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            // Errors are ignored: clients disconnect at any time.
            done = &mut connection => drop(done),
            () = silence => {}
        }
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Result<Response<Body>, Infallible> {
        let mut request = request.map(Body::new);
        if request.uri().path() == "/metrics"
            && let Some(local) = &self.local
            && self.trusted.is_local(peer, request.headers())
        {
            return local.clone().oneshot(request).await;
        }
        let client = self.trusted.client(peer, request.headers());
        request.extensions_mut().insert(ConnectInfo(client));
        let mut response = self.router.clone().oneshot(request).await?;
        if self.tls.is_some() {
            let headers = response.headers_mut();
            headers.insert(header::STRICT_TRANSPORT_SECURITY, TRANSPORT_SECURITY);
        }
        Ok(response)
    }
}

/// Waits after a failed accept, because file descriptors may become free.
async fn pause(error: &std::io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    sleep(ACCEPT_RETRY_DELAY).await;
}

/// Waits for requests in progress, for at most [`DRAIN_TIMEOUT`].
async fn drain(connections: GracefulShutdown) {
    if timeout(DRAIN_TIMEOUT, connections.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests were cut off when their time to end was over");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::now;
    use axum::routing::get;
    use std::fs;
    use std::pin::pin;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const MAX_OPEN: usize = 64;
    /// Bytes in flight between client and server.
    const PIPE_BYTES: usize = 16 * 1024;
    /// A second before, and after, the end of a connection without a request.
    const EARLY: Duration = Duration::from_secs(14);
    const LATE: Duration = Duration::from_secs(16);

    fn connections(tls: Option<Arc<Tls>>) -> Connections {
        Connections {
            router: Router::new().route("/", get(async || "found")),
            tls,
            trusted: TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]),
            local: None,
            max_open: MAX_OPEN,
        }
    }

    fn certificate() -> Arc<Tls> {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let cert = folder.path().join("cert.pem");
        let key = folder.path().join("key.pem");
        fs::write(&cert, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        Arc::new(Tls::load(cert, key, now()).unwrap())
    }

    #[tokio::test]
    async fn connections_of_the_network_are_admitted_with_tls_only() {
        let (plain, secured) = (connections(None), connections(Some(certificate())));
        let permits = Arc::new(Semaphore::new(MAX_OPEN));
        let mut peers = Peers::new(MAX_OPEN);
        let mut is_admitted = |connections: &Connections, peer: &str| {
            let peer = peer.parse().unwrap();
            connections.admit(peer, &permits, &mut peers).is_some()
        };
        for (peer, expected) in [
            ("127.0.0.1", true),
            ("10.1.1.1", true),
            ("192.0.2.1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_admitted(&plain, peer), expected, "{peer}");
            assert!(is_admitted(&secured, peer), "{peer} with TLS");
        }
    }

    /// Sends `bytes`, and then nothing. Returns whether the connection is open after `time`, and the
    /// response.
    async fn open_after(time: Duration, bytes: &str) -> (bool, String) {
        let connections = connections(None);
        let peer: SocketAddr = "127.0.0.1:40000".parse().unwrap();
        let admitted = Peers::new(MAX_OPEN).admit(peer.ip(), MAX_OPEN).unwrap();
        let graceful = GracefulShutdown::new();
        let (mut client, server) = duplex(PIPE_BYTES);
        client.write_all(bytes.as_bytes()).await.unwrap();
        let served = connections.serve_requests(server, peer, &admitted, graceful.watcher());
        let served = pin!(served);
        let is_open = timeout(time, served).await.is_err();
        let mut received = vec![0; PIPE_BYTES];
        let read = timeout(Duration::ZERO, client.read(&mut received)).await;
        received.truncate(read.map_or(0, Result::unwrap));
        (is_open, String::from_utf8(received).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_closed_after_fifteen_seconds() {
        for bytes in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: control\r\n"] {
            let (is_open, answer) = open_after(EARLY, bytes).await;
            assert!(is_open && answer.is_empty(), "{bytes}: {answer}");
            let (is_open, answer) = open_after(LATE, bytes).await;
            assert!(!is_open && answer.is_empty(), "{bytes}: {answer}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_request_stays_open_for_the_next_one() {
        let request = "GET / HTTP/1.1\r\nhost: control\r\n\r\n";
        let (is_open, answer) = open_after(LATE, request).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(is_open, "{answer}");
    }
}
