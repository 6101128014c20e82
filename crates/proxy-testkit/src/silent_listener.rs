//! An address that does not answer.

use socket2::{Domain, Socket, Type};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Time without an answer after which the queue counts as full.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);

/// A listener with a full queue: connecting to it neither succeeds nor fails while it exists.
#[derive(Debug)]
pub struct SilentListener {
    address: SocketAddr,
    /// Kept open, as is the listener.
    _queued: Vec<TcpStream>,
    _listener: Socket,
}

impl SilentListener {
    /// A silent address of 127.0.0.1.
    #[must_use]
    pub fn start() -> Self {
        Self::start_at(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).expect("a port is free")
    }

    /// A silent address with this port, or a free one for 0.
    ///
    /// # Errors
    /// Errors of the operating system, for example that the port is in use.
    pub fn start_at(ip: IpAddr, port: u16) -> std::io::Result<Self> {
        let wanted = SocketAddr::from((ip, port));
        let listener = Socket::new(Domain::for_address(wanted), Type::STREAM, None)?;
        listener.bind(&wanted.into())?;
        listener.listen(0)?;
        let address = listener.local_addr()?.as_socket();
        let address = address.expect("a TCP socket has an address");
        let mut queued = Vec::new();
        loop {
            match TcpStream::connect_timeout(&address, ANSWER_TIMEOUT) {
                Ok(stream) => queued.push(stream),
                Err(error) if error.kind() == ErrorKind::TimedOut => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            address,
            _queued: queued,
            _listener: listener,
        })
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
