//! A client that sends raw bytes.

pub(crate) mod exchanges;

use crate::deadline::EVENT_TIMEOUT;
use crate::http::message::{Framing, Response};
use crate::http::wire::{Broken, End, Wire};
use socket2::{Domain, Socket, Type};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection to the proxy.
#[derive(Debug)]
pub struct RawClient(Wire);

impl RawClient {
    /// Connects to `address`.
    #[must_use]
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        match Self::try_connect(address) {
            Ok(client) => client,
            Err(error) => panic!("cannot connect to {address}: {error}"),
        }
    }

    /// Connects to `address`; fails if it is refused.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn try_connect(address: SocketAddr) -> std::io::Result<Self> {
        TcpStream::connect_timeout(&address, EVENT_TIMEOUT).map(|stream| Self(Wire::new(stream)))
    }

    /// The end of a new connection to `address` on which the client sends nothing.
    ///
    /// A reset can arrive before `connect` returns; it counts as the end.
    #[must_use]
    #[track_caller]
    pub fn end_of_new(address: SocketAddr) -> End {
        match Self::try_connect(address) {
            Ok(mut client) => client.end(),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => End::Reset,
            Err(error) => panic!("cannot connect to {address}: {error}"),
        }
    }

    /// The client's end of a connection made otherwise, as by [`loopback_pair`].
    #[must_use]
    pub fn over(stream: TcpStream) -> Self {
        Self(Wire::new(stream))
    }

    /// The client's end of a connection by Unix sockets.
    #[must_use]
    pub fn over_unix(stream: UnixStream) -> Self {
        // `TcpStream` reads and writes sockets of any family.
        let stream = TcpStream::from(OwnedFd::from(stream));
        Self(Wire::with_timeouts(stream))
    }

    /// Connects to the Unix socket at `path`.
    #[must_use]
    #[track_caller]
    pub fn connect_unix(path: &Path) -> Self {
        match Self::try_connect_unix(path) {
            Ok(client) => client,
            Err(error) => panic!("cannot connect to {}: {error}", path.display()),
        }
    }

    /// Connects to the Unix socket at `path`; fails if it is refused.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn try_connect_unix(path: &Path) -> std::io::Result<Self> {
        UnixStream::connect(path).map(Self::over_unix)
    }

    /// Connects to `address` with a receive buffer of about `bytes`, so that unread data soon
    /// blocks the sender.
    #[must_use]
    pub fn connect_with_small_buffer(address: SocketAddr, bytes: usize) -> Self {
        let connected = Socket::new(Domain::for_address(address), Type::STREAM, None)
            .and_then(|socket| socket.set_recv_buffer_size(bytes).map(|()| socket))
            .and_then(|socket| socket.connect(&address.into()).map(|()| socket));
        let socket = connected.expect("the proxy takes a connection");
        Self(Wire::new(socket.into()))
    }

    /// Sends `bytes`.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        if let Err(broken) = self.0.send(bytes) {
            panic!("cannot send: {broken}");
        }
        self
    }

    /// Sends `bytes` and reads the response.
    #[track_caller]
    pub fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Response {
        self.send(bytes).response()
    }

    /// Reads one response; a 1xx counts as one.
    #[must_use]
    #[track_caller]
    pub fn response(&mut self) -> Response {
        match self.try_response() {
            Ok(response) => response,
            Err(broken) => panic!("no response: {broken}; so far: {}", self.so_far()),
        }
    }

    /// Reads one response to a HEAD request, which has no body.
    #[must_use]
    #[track_caller]
    pub fn response_to_head(&mut self) -> Response {
        let mut response = self.head();
        response.framing = Framing::None;
        response
    }

    /// Reads the head of a response and leaves its body unread.
    #[must_use]
    #[track_caller]
    pub fn head(&mut self) -> Response {
        match self.try_head() {
            Ok(response) => response,
            Err(broken) => panic!("no response: {broken}; so far: {}", self.so_far()),
        }
    }

    /// Reads the body of a `head` read before.
    #[track_caller]
    pub fn body(&mut self, head: &mut Response) {
        if let Err(broken) = self.try_body(head) {
            panic!("no body: {broken}; so far: {}", self.so_far());
        }
    }

    /// Reads one complete response.
    ///
    /// # Errors
    /// [`Broken`] without a complete response.
    pub fn try_response(&mut self) -> Result<Response, Broken> {
        let mut response = self.try_head()?;
        self.try_body(&mut response)?;
        Ok(response)
    }

    /// Reads the head of a response and leaves its body unread.
    ///
    /// # Errors
    /// [`Broken`] without a complete head.
    pub fn try_head(&mut self) -> Result<Response, Broken> {
        Response::read_head(&mut self.0)
    }

    /// Reads the body of a `head` read before.
    ///
    /// # Errors
    /// [`Broken`] without a complete body.
    pub fn try_body(&mut self, head: &mut Response) -> Result<(), Broken> {
        head.read_body(&mut self.0)
    }

    /// Waits until the proxy closes the connection without sending another byte.
    #[must_use]
    #[track_caller]
    pub fn end(&mut self) -> End {
        match self.0.rest() {
            Ok((bytes, end)) if bytes.is_empty() => end,
            Ok((bytes, _)) => panic!("unexpected: {}", String::from_utf8_lossy(&bytes)),
            Err(broken) => panic!("the connection does not end: {broken}"),
        }
    }

    fn so_far(&mut self) -> String {
        let taken = self.0.verbatim();
        String::from_utf8_lossy(&taken).into_owned()
    }
}

impl Deref for RawClient {
    type Target = Wire;

    fn deref(&self) -> &Wire {
        &self.0
    }
}

impl DerefMut for RawClient {
    fn deref_mut(&mut self) -> &mut Wire {
        &mut self.0
    }
}

/// Both ends of a new TCP connection over loopback: the client's, and the one that a proxy in this
/// process is to serve.
#[must_use]
pub fn loopback_pair() -> (TcpStream, TcpStream) {
    let pair = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| {
        let client = TcpStream::connect(listener.local_addr()?)?;
        let (server, _) = listener.accept()?;
        server.set_nodelay(true)?;
        Ok((client, server))
    });
    pair.expect("loopback connects")
}

/// A GET request for `target` at the host `a.test`, with these header fields.
#[must_use]
pub fn get(target: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n");
    for (name, value) in fields {
        request.extend([name, ": ", value, "\r\n"]);
    }
    request.push_str("\r\n");
    request.into_bytes()
}
