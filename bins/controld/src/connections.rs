//! Connections of clients: accepted, secured, served, and drained at the end.

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
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// Maximum duration of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time until the first request, after which the connection is closed.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time between two requests, and from the first to the last byte of a head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(90);
/// Grace period for requests in flight at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// `Strict-Transport-Security` (RFC 6797): browsers use TLS for this host for a year. Subdomains may have other owners.
const TRANSPORT_SECURITY: HeaderValue = HeaderValue::from_static("max-age=31536000");
/// Delay after a failed accept, such as with too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Context of every connection.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) router: Router,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) trusted: TrustedProxies,
    /// Served with the interface, for clients on this machine; `None` if metrics have a separate
    /// address.
    pub(crate) local: Option<Router>,
    /// Connections that may be open at once.
    pub(crate) max_open: usize,
}

impl Connections {
    /// Serves until `stopped`, then waits for requests in flight.
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
                Ok((_, peer)) if own.tls.is_none() && !own.trusted.may_speak_plain(peer.ip()) => {
                    // Credentials would cross the network without TLS.
                    counter!(metric::CONNECTIONS_REFUSED).increment(1);
                }
                Ok((stream, peer)) => {
                    // A balancer's address represents many clients.
                    let free = if own.trusted.holds(peer.ip()) {
                        usize::MAX
                    } else {
                        permits.available_permits()
                    };
                    let permit = Arc::clone(&permits).try_acquire_owned().ok();
                    let admitted = permit.zip(peers.admit(peer.ip(), free));
                    let Some((permit, admitted)) = admitted else {
                        // Closed at once: the client retries later, or at another replica.
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

    /// Serves a connection, over TLS if there is a certificate.
    async fn serve_stream(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        admitted: &PeerConnection,
        watcher: Watcher,
    ) {
        // Answers are small and written at once.
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

    /// Serves the requests of a connection until it ends, or stays without a first request.
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
            // It fails when a client disconnects, which is not an error here.
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

/// Waits briefly after a failed accept: descriptors may be released.
async fn pause(error: &std::io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    sleep(ACCEPT_RETRY_DELAY).await;
}

/// Waits until requests in flight have ended, at most for [`DRAIN_TIMEOUT`].
async fn drain(connections: GracefulShutdown) {
    if timeout(DRAIN_TIMEOUT, connections.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests were cut off when their time to end was over");
    }
}
