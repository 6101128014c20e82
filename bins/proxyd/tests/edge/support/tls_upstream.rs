//! A TLS target.

use super::certificates::{Authority, Identity};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::server::{NoClientAuth, WebPkiClientVerifier};
use tokio_rustls::server::TlsStream;

/// A target that answers every request with `hello`, over HTTP/1.1 and TLS.
pub(crate) struct TlsUpstream {
    pub(crate) address: SocketAddr,
    handshakes: Receiver<Handshake>,
    ends: Receiver<bool>,
}

/// The handshake parameters of a connection.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) server_name: Option<String>,
    pub(crate) protocol: Option<Vec<u8>>,
    pub(crate) has_certificate: bool,
    pub(crate) resumed: bool,
}

/// The TLS configuration of a target.
pub(crate) fn server_config(
    identity: &Identity,
    asks: Option<&Authority>,
    protocols: &[&str],
) -> Arc<ServerConfig> {
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let verifier = match asks {
        None => Arc::new(NoClientAuth),
        Some(authority) => {
            let roots = Arc::new(authority.roots());
            WebPkiClientVerifier::builder_with_provider(roots, provider)
                .build()
                .unwrap()
        }
    };
    let mut config = builder
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![identity.der()], identity.key())
        .unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    Arc::new(config)
}

impl TlsUpstream {
    pub(crate) fn start(config: Arc<ServerConfig>) -> Self {
        let (handshake_sender, handshakes) = channel();
        let (end_sender, ends) = channel();
        let (bound, address) = channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
                bound.send(listener.local_addr().unwrap()).unwrap();
                let acceptor = TlsAcceptor::from(config);
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(
                        acceptor.clone(),
                        stream,
                        handshake_sender.clone(),
                        end_sender.clone(),
                    ));
                }
            });
        });
        Self {
            address: address.recv().unwrap(),
            handshakes,
            ends,
        }
    }

    /// Waits for the next connection.
    pub(crate) fn next_handshake(&self) -> Handshake {
        self.handshakes
            .recv_timeout(proxy_testkit::EVENT_TIMEOUT)
            .unwrap()
    }

    /// Waits for the next connection's end. Returns whether it was closed with `close_notify`.
    pub(crate) fn was_closed_by_notify(&self) -> bool {
        self.ends
            .recv_timeout(proxy_testkit::EVENT_TIMEOUT)
            .unwrap()
    }
}

impl Handshake {
    fn from_stream(stream: &TlsStream<TcpStream>) -> Self {
        let (_, session) = stream.get_ref();
        let kind = session.handshake_kind();
        Self {
            server_name: session.server_name().map(ToOwned::to_owned),
            protocol: session.alpn_protocol().map(ToOwned::to_owned),
            has_certificate: session.peer_certificates().is_some(),
            resumed: kind == Some(tokio_rustls::rustls::HandshakeKind::Resumed),
        }
    }
}

async fn serve(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    handshake_sender: Sender<Handshake>,
    end_sender: Sender<bool>,
) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    // The listener must be closed when the test ends.
    drop(handshake_sender.send(Handshake::from_stream(&stream)));
    let end = answer(stream).await;
    end_sender.send(end).unwrap_or_default();
}

/// Returns true if `close_notify` was received.
async fn answer(mut stream: TlsStream<TcpStream>) -> bool {
    let mut read = Vec::new();
    loop {
        match stream.read_buf(&mut read).await {
            Ok(0) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
        if read.ends_with(b"\r\n\r\n") {
            read.clear();
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
            if stream.write_all(response).await.is_err() || stream.flush().await.is_err() {
                return false;
            }
        }
    }
}
