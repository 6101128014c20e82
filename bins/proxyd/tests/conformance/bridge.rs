//! TLS bridge for clients that do not support TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use tokio::io::{AsyncWriteExt, copy, sink, split};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Accepts plaintext connections and forwards each to `to` over TLS, with `protocol` in ALPN.
/// Returns the address to connect to.
///
/// Bytes and ends of streams are forwarded unchanged, except that a reset becomes an orderly close.
pub(crate) fn over_tls(to: SocketAddr, roots: RootCertStore, protocol: &str) -> SocketAddr {
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let (bound, address) = channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            bound.send(listener.local_addr().unwrap()).unwrap();
            while let Ok((plain, _)) = listener.accept().await {
                tokio::spawn(relay_over_tls(plain, to, connector.clone()));
            }
        });
    });
    address.recv().unwrap()
}

async fn relay_over_tls(mut plain: TcpStream, to: SocketAddr, connector: TlsConnector) {
    let Ok(stream) = TcpStream::connect(to).await else {
        return;
    };
    stream.set_nodelay(true).unwrap();
    plain.set_nodelay(true).unwrap();
    // An address as the server name: no SNI is sent, so requests may be for any host.
    let name = ServerName::from(to.ip());
    let Ok(tls) = connector.connect(name, stream).await else {
        return;
    };
    let (mut near, mut answers) = plain.split();
    let (mut far, mut asked) = split(tls);
    let up = async {
        if copy(&mut near, &mut asked).await.is_err() {
            // Closing with unread bytes would cause a reset.
            copy(&mut near, &mut sink()).await.ok();
        }
        asked.shutdown().await.ok();
    };
    let down = async {
        copy(&mut far, &mut answers).await.ok();
        answers.shutdown().await.ok();
    };
    tokio::join!(up, down);
}
