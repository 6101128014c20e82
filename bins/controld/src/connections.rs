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

/// A handshake takes at most this long.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A connection without a request after this time is closed.
const FIRST_REQUEST: Duration = Duration::from_secs(15);
/// A request's head takes at most this long, and so does the pause before it.
const HEAD: Duration = Duration::from_secs(90);
/// Grace period for requests in flight at shutdown.
const DRAIN: Duration = Duration::from_secs(30);
/// `Strict-Transport-Security` (RFC 6797): browsers use TLS for this host for a year. Subdomains may have other owners.
const TRANSPORT_SECURITY: HeaderValue = HeaderValue::from_static("max-age=31536000");
/// After an error of the listener, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

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
                    // Its key would cross the network in the clear.
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
                        own.connection(stream, (peer, &admitted), watcher).await;
                        drop(permit);
                    });
                }
                Err(error) => pause(&error).await,
            }
        }
        drop(listener);
        drain(graceful).await;
    }

    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: (SocketAddr, &PeerConnection),
        watcher: Watcher,
    ) {
        // Answers are small and written at once.
        stream.set_nodelay(true).ok();
        let open = gauge!(metric::CONNECTIONS_OPEN);
        open.increment(1);
        match &self.tls {
            None => self.requests(stream, peer, watcher).await,
            Some(tls) => {
                let acceptor = TlsAcceptor::from(tls.config());
                match timeout(HANDSHAKE, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => self.requests(stream, peer, watcher).await,
                    Ok(Err(_)) | Err(_) => {
                        counter!(metric::TLS_HANDSHAKE_FAILURES).increment(1);
                    }
                }
            }
        }
        open.decrement(1);
    }

    async fn requests<S>(
        &self,
        stream: S,
        (peer, admitted): (SocketAddr, &PeerConnection),
        watcher: Watcher,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let service = service_fn(|request| {
            admitted.speak();
            self.request(request, peer)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(ParseErrors::new(stream)), service);
        let mut connection = std::pin::pin!(watcher.watch(connection));
        let silence = async {
            if timeout(FIRST_REQUEST, admitted.spoken()).await.is_ok() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            // It fails when a client disconnects, which is no error here.
            done = &mut connection => drop(done),
            () = silence => {}
        }
    }

    async fn request(
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
    sleep(PAUSE).await;
}

/// Waits until requests in flight have ended, at most for [`DRAIN`].
async fn drain(connections: GracefulShutdown) {
    if timeout(DRAIN, connections.shutdown()).await.is_err() {
        tracing::warn!("requests were cut off when their time to end was over");
    }
}
