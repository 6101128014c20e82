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
                Ok((_, peer)) if own.tls.is_none() && !own.trusted.may_speak_plain(peer.ip()) => {
                    // Without TLS, credentials would be readable on the network.
                    counter!(metric::CONNECTIONS_REFUSED).increment(1);
                }
                Ok((stream, peer)) => {
                    // A balancer's connections are those of many clients, so the limit per
                    // address does not apply.
                    let free = if own.trusted.holds(peer.ip()) {
                        usize::MAX
                    } else {
                        permits.available_permits()
                    };
                    let permit = Arc::clone(&permits).try_acquire_owned().ok();
                    let admitted = permit.zip(peers.admit(peer.ip(), free));
                    let Some((permit, admitted)) = admitted else {
                        // The client retries later, or connects to another replica.
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
