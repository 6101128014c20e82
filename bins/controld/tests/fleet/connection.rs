//! HTTP client with a chosen source address: many clients on one machine.

use std::future::pending;
use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Header field with a credential, such as `authorization: Bearer …`.
pub(crate) type Credential = String;

/// Client with a source address on the loopback network, and a reusable connection.
#[derive(Debug)]
pub(crate) struct Caller {
    from: Ipv4Addr,
    to: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// Value of `ETag`; empty without one.
    pub(crate) tag: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn bearer(key: &str) -> Credential {
    format!("authorization: Bearer {key}")
}

pub(crate) fn node_key(key: &str) -> Credential {
    format!("x-service-node-key: {key}")
}

/// Waits between two requests of a load.
pub(crate) async fn pace(time: Duration) {
    drop(timeout(time, pending::<()>()).await);
}

/// Connects from the address `from`.
pub(crate) async fn connect(from: Ipv4Addr, to: SocketAddr) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((from, 0)))?;
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Formats the head of a request with a body of `length` bytes.
pub(crate) fn head(method: &str, path: &str, credential: &str, length: usize) -> String {
    format!(
        "{method} /api/v1{path} HTTP/1.1\r\nhost: control\r\n{credential}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

impl Caller {
    pub(crate) fn new(from: Ipv4Addr, to: SocketAddr) -> Self {
        Self {
            from,
            to,
            stream: None,
        }
    }

    /// Sends a request and reads its response. After an error, the next request uses a new
    /// connection.
    pub(crate) async fn call(
        &mut self,
        (method, path): (&str, &str),
        credential: &str,
        body: &[u8],
    ) -> Result<Answered> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(connect(self.from, self.to).await?),
        };
        let head = head(method, path, credential, body.len());
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let (answered, is_kept) = read_answer(&mut stream).await?;
        self.stream = is_kept.then_some(stream);
        Ok(answered)
    }
}

/// Reads a response of known length. Also returns whether the connection stays open.
async fn read_answer(stream: &mut BufReader<TcpStream>) -> Result<(Answered, bool)> {
    let malformed = || Error::new(ErrorKind::InvalidData, "no answer with a length");
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(malformed)?;
    let (mut length, mut is_kept, mut tag) = (0, true, String::new());
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Err(malformed());
        }
        let field = line.trim_end().to_ascii_lowercase();
        if let Some(text) = field.strip_prefix("content-length: ") {
            length = text.parse().map_err(|_| malformed())?;
        }
        if field.starts_with("etag: ") {
            line.trim_end()
                .split_at("etag: ".len())
                .1
                .clone_into(&mut tag);
        }
        is_kept &= field != "connection: close";
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok((Answered { status, tag, body }, is_kept))
}
