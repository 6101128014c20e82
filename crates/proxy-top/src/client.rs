//! A client of the admin interface.

pub(crate) mod error;

use crate::reading::Reading;
use error::TopError;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// Maximum time of a request: connection, head and body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum length of a response: the metrics of 50 000 routes.
const MAX_RESPONSE_BYTES: usize = 256 * 1024 * 1024;
const MAX_HEADERS: usize = 64;
const METRICS: &str = "/metrics";
const UPSTREAMS: &str = "/admin/upstreams";
const READY: &str = "/ready";

/// The address of an admin interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// `127.0.0.1:9090`.
    Tcp(SocketAddr),
    /// `unix:/run/proxyd/admin.sock`.
    Unix(PathBuf),
}

/// A text that is not an address of an admin interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an address and a port, as 127.0.0.1:9090, or unix:/run/proxyd/admin.sock")]
pub struct AdminAddressError;

impl FromStr for AdminAddress {
    type Err = AdminAddressError;

    fn from_str(text: &str) -> Result<Self, AdminAddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            let is_path = path.starts_with('/');
            return is_path
                .then(|| Self::Unix(path.into()))
                .ok_or(AdminAddressError);
        }
        text.parse().map(Self::Tcp).map_err(|_| AdminAddressError)
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Reads an admin interface, with a connection for each request.
#[derive(Clone)]
pub struct AdminClient {
    address: AdminAddress,
    token: Option<String>,
}

impl fmt::Debug for AdminClient {
    /// Omits the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, token: _ } = self;
        f.debug_tuple("AdminClient").field(address).finish()
    }
}

impl AdminClient {
    /// A client that sends this token, surrounding white space removed.
    ///
    /// # Errors
    /// [`TopError::Token`] if no header field takes it.
    pub fn new(address: AdminAddress, token: Option<&str>) -> Result<Self, TopError> {
        let token = token.map(str::trim).map(str::to_owned);
        let is_usable = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        if token.as_deref().is_some_and(|token| !is_usable(token)) {
            return Err(TopError::Token);
        }
        Ok(Self { address, token })
    }

    /// The counters of this moment.
    pub(crate) async fn read(&self) -> Result<Reading, TopError> {
        let metrics = self.get(METRICS).await?;
        let upstreams = self.get(UPSTREAMS).await?;
        let upstreams = serde_json::from_str(&upstreams).map_err(|error| TopError::Response {
            address: self.address.to_string(),
            path: UPSTREAMS,
            fault: error.to_string(),
        })?;
        Ok(Reading::new(&metrics, upstreams))
    }

    /// Asks for readiness, which needs no token.
    pub(crate) async fn check_ready(&self) -> Result<(), TopError> {
        match self.fetch(READY).await? {
            (200, _) => Ok(()),
            (503, body) => Err(TopError::NotReady {
                address: self.address.to_string(),
                body,
            }),
            (status, _) => Err(self.unexpected(READY, status)),
        }
    }

    async fn get(&self, path: &'static str) -> Result<String, TopError> {
        match self.fetch(path).await? {
            (200, body) => Ok(body),
            (401, _) => Err(TopError::Unauthorized(self.address.to_string())),
            (status, _) => Err(self.unexpected(path, status)),
        }
    }

    fn unexpected(&self, path: &'static str, status: u16) -> TopError {
        TopError::Status {
            address: self.address.to_string(),
            path,
            status,
        }
    }

    /// Status and body of a response.
    async fn fetch(&self, path: &'static str) -> Result<(u16, String), TopError> {
        let whole = timeout(REQUEST_TIMEOUT, self.exchange(path)).await;
        let Ok(received) = whole else {
            return Err(TopError::Timeout(self.address.to_string()));
        };
        let received = received.map_err(|source| TopError::Connection {
            address: self.address.to_string(),
            source,
        })?;
        response(&received).map_err(|fault| TopError::Response {
            address: self.address.to_string(),
            path,
            fault: fault.to_owned(),
        })
    }

    /// The bytes of the response.
    async fn exchange(&self, path: &str) -> io::Result<Vec<u8>> {
        let request = self.request(path);
        match &self.address {
            AdminAddress::Tcp(address) => {
                send(TcpStream::connect(reachable(*address)).await?, &request).await
            }
            AdminAddress::Unix(path) => send(UnixStream::connect(path).await?, &request).await,
        }
    }

    /// A request for a response that ends with its connection.
    fn request(&self, path: &str) -> String {
        let token = self
            .token
            .as_ref()
            .map(|token| format!("Authorization: Bearer {token}\r\n"));
        let token = token.unwrap_or_default();
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}\r\n")
    }
}

/// The address to connect to for a listener's: loopback for all addresses of the machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let loopback = if address.is_ipv4() {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    } else {
        IpAddr::V6(Ipv6Addr::LOCALHOST)
    };
    let is_any = address.ip().is_unspecified();
    let ip = if is_any { loopback } else { address.ip() };
    SocketAddr::new(ip, address.port())
}

async fn send(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &str,
) -> io::Result<Vec<u8>> {
    stream.write_all(request.as_bytes()).await?;
    let mut received = Vec::new();
    let most = u64::try_from(MAX_RESPONSE_BYTES).unwrap_or(u64::MAX);
    stream.take(most).read_to_end(&mut received).await?;
    Ok(received)
}

/// Status and body of a response that ends with its connection.
fn response(received: &[u8]) -> Result<(u16, String), &'static str> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let parsed = head
        .parse(received)
        .map_err(|_| "it is not HTTP response")?;
    let httparse::Status::Complete(length) = parsed else {
        return Err("the response ends within its head");
    };
    let body = received.get(length..).unwrap_or_default();
    let value = |name: &str| {
        let mut headers = head.headers.iter();
        let header = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
        str::from_utf8(header.value).ok()
    };
    if value("transfer-encoding").is_some() {
        return Err("the response is chunked");
    }
    let expected = value("content-length").and_then(|length| length.parse::<usize>().ok());
    if expected.is_some_and(|length| length != body.len()) {
        return Err("the response ends before its length");
    }
    let body = String::from_utf8(body.to_vec()).map_err(|_| "the response is not UTF-8")?;
    Ok((head.code.unwrap_or_default(), body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_tcp_or_unix_sockets() {
        let parsed: AdminAddress = "127.0.0.1:9090".parse().unwrap();
        assert_eq!(parsed.to_string(), "127.0.0.1:9090");
        let parsed: AdminAddress = "unix:/run/admin.sock".parse().unwrap();
        assert_eq!(parsed.to_string(), "unix:/run/admin.sock");
        for text in [
            "",
            "9090",
            "localhost:9090",
            "unix:",
            "unix:admin.sock",
            "http://127.0.0.1:9090",
        ] {
            assert_eq!(
                text.parse::<AdminAddress>(),
                Err(AdminAddressError),
                "{text}"
            );
        }
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 9090));
        assert_eq!(
            reachable(everywhere),
            SocketAddr::from(([127, 0, 0, 1], 9090))
        );
    }

    #[test]
    fn a_token_that_would_add_a_line_is_refused() {
        let address = AdminAddress::Unix("/a".into());
        for token in ["", " \n", "a\r\nb: c", "a b", "ä"] {
            let client = AdminClient::new(address.clone(), Some(token));
            assert!(matches!(client, Err(TopError::Token)), "{token:?}");
        }
        let client = AdminClient::new(address, Some("secret-of-16-chars\n")).unwrap();
        let request = client.request("/metrics");
        assert!(
            request.contains("\r\nAuthorization: Bearer secret-of-16-chars\r\n\r\n"),
            "{request}"
        );
        assert!(!format!("{client:?}").contains("secret"));
    }

    #[test]
    fn a_response_is_complete_or_refused() {
        let whole = b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nab";
        assert_eq!(response(whole), Ok((200, "ab".to_owned())));
        let until_end = b"HTTP/1.1 401 Unauthorized\r\n\r\n";
        assert_eq!(response(until_end), Ok((401, String::new())));
        for part in [
            &b""[..],
            b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\na",
            b"HTTP/1.0 200 OK\r\ncontent-le",
            b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            b"HTTP/1.0 200 OK\r\n\r\n\xff",
            b"SSH-2.0-OpenSSH\r\n",
        ] {
            assert!(response(part).is_err(), "{part:?}");
        }
    }
}
