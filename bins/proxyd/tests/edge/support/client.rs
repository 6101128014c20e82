//! A TLS client with HTTP/1.1.

use super::certificates::{Authority, Identity};
use super::staples::Staples;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{ClientConfig, HandshakeKind, SupportedProtocolVersion};

/// The configuration of a client's connections. Sessions are resumed between them.
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
}

/// One connection of a client.
pub(crate) struct Secure {
    pub(crate) stream: TlsStream<TcpStream>,
    unread: Vec<u8>,
}

impl TlsClient {
    /// A client that trusts `authority`, with rustls's defaults.
    pub(crate) fn trusting(authority: &Authority) -> Self {
        let versions = tokio_rustls::rustls::DEFAULT_VERSIONS;
        Self::new(authority, versions, None)
    }

    /// Restricted to these versions of TLS.
    pub(crate) fn with_versions(
        authority: &Authority,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        Self::new(authority, versions, None)
    }

    /// With a client certificate.
    pub(crate) fn showing(authority: &Authority, identity: &Identity) -> Self {
        let versions = tokio_rustls::rustls::DEFAULT_VERSIONS;
        Self::new(authority, versions, Some(identity))
    }

    /// Trusts every server, and records the OCSP responses.
    pub(crate) fn recording_staples(staples: &Arc<Staples>) -> Self {
        Self {
            config: Arc::new(staples.client()),
        }
    }

    fn new(
        authority: &Authority,
        versions: &[&'static SupportedProtocolVersion],
        identity: Option<&Identity>,
    ) -> Self {
        let trusting = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(authority.roots());
        let config = match identity {
            None => trusting.with_no_client_auth(),
            Some(identity) => {
                let key = default_provider().key_provider;
                let key = key.load_private_key(identity.key()).unwrap();
                // `with_client_auth_cert` would refuse a certificate that it cannot read.
                let shown = CertifiedKey::new(vec![identity.der()], key);
                trusting.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(shown)))
            }
        };
        Self {
            config: Arc::new(config),
        }
    }

    /// Offers these protocols.
    pub(crate) fn offering(self, protocols: &[&str]) -> Self {
        let mut config = (*self.config).clone();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        Self {
            config: Arc::new(config),
        }
    }

    /// Connects with `name` as SNI.
    pub(crate) async fn connect(&self, to: SocketAddr, name: &str) -> Secure {
        self.try_connect(to, name).await.unwrap()
    }

    pub(crate) async fn try_connect(&self, to: SocketAddr, name: &str) -> io::Result<Secure> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        self.over(stream, name).await
    }

    /// Performs a handshake on a connection that may already have carried data.
    pub(crate) async fn over(&self, stream: TcpStream, name: &str) -> io::Result<Secure> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connector = TlsConnector::from(Arc::clone(&self.config));
        Ok(Secure {
            stream: connector.connect(name, stream).await?,
            unread: Vec::new(),
        })
    }
}

impl Secure {
    /// The server's certificate.
    pub(crate) fn shown(&self) -> CertificateDer<'static> {
        let (_, session) = self.stream.get_ref();
        session.peer_certificates().unwrap()[0].clone()
    }

    /// The negotiated protocol.
    pub(crate) fn protocol(&self) -> Option<&str> {
        let (_, session) = self.stream.get_ref();
        session
            .alpn_protocol()
            .map(|name| std::str::from_utf8(name).unwrap())
    }

    /// Sends a GET and returns status and body.
    pub(crate) async fn get(&mut self, host: &str, target: &str) -> (u16, String) {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let (head, body) = self.response().await;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, String::from_utf8(body).unwrap())
    }

    /// Sends a GET and returns the head of the response, in lower case.
    pub(crate) async fn head(&mut self, host: &str, target: &str) -> String {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.response().await.0
    }

    /// Sends the rest of a request and returns the status.
    pub(crate) async fn get_rest(&mut self, rest: &str) -> u16 {
        self.stream.write_all(rest.as_bytes()).await.unwrap();
        let (head, _) = self.response().await;
        head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Returns true if an earlier session was resumed.
    pub(crate) fn is_resumed(&self) -> bool {
        let (_, session) = self.stream.get_ref();
        session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Reads a response with a length: its head and its body.
    pub(crate) async fn response(&mut self) -> (String, Vec<u8>) {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|at| at == b"\r\n\r\n") {
                break at + 4;
            }
            self.read().await;
        };
        let head: Vec<u8> = self.unread.drain(..end).collect();
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        while self.unread.len() < length {
            self.read().await;
        }
        let body = self.unread.drain(..length).collect();
        (head, body)
    }

    async fn read(&mut self) {
        let count = self.stream.read_buf(&mut self.unread).await.unwrap();
        assert_ne!(count, 0, "the proxy closed the connection");
    }
}
