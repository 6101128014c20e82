//! Listening sockets: bound before use, shared by workers, handed over to a new process.

mod backlog;
mod tcp;
mod udp;
mod unix;

use proxy_config::{Diagnostic, DiagnosticCode};
use proxy_model::{BindAddress, Place};
use socket2::Socket;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

pub(crate) use unix::{OnDrop, SocketFile, open as open_unix};

/// Mode of a listener's Unix socket: any process with access to its folder may connect.
const SOCKET_MODE: u32 = 0o666;

/// The reason why an address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {why}")]
pub struct BindError {
    /// The address as written in the configuration.
    pub address: String,
    /// The cause, as an instruction for operators.
    pub why: String,
    /// The error of the operating system.
    #[source]
    pub source: io::Error,
}

impl BindError {
    pub(crate) fn new(address: &BindAddress, source: io::Error) -> Self {
        let why = match address {
            BindAddress::Tcp(address) => tcp::why(*address, &source),
            BindAddress::Unix(path) => unix::why(path, &source),
        };
        Self {
            address: address.to_string(),
            why,
            source,
        }
    }

    /// The error with `holder`, the part of this process that has the address, in place of another
    /// process; unchanged for another cause.
    pub(crate) fn held_by(mut self, holder: Option<String>) -> Self {
        if let Some(holder) = holder.filter(|_| self.source.kind() == io::ErrorKind::AddrInUse) {
            self.why = holder;
        }
        self
    }

    /// The error with `other`, a part of the configuration that the address overlaps with, beside the
    /// process that has it; unchanged for another cause.
    pub(crate) fn overlapped_by(mut self, other: &str) -> Self {
        if self.source.kind() == io::ErrorKind::AddrInUse {
            self.why = format!("{}; {other} overlaps it", self.why);
        }
        self
    }

    /// An error of the UDP socket at `address`.
    fn udp(address: SocketAddr, source: io::Error) -> Self {
        Self {
            address: format!("UDP port {address}"),
            why: udp::why(address, &source),
            source,
        }
    }

    /// The error as a diagnostic at `place`, the place of its address.
    pub(crate) fn diagnostic(&self, place: Place) -> Diagnostic {
        let code = if self.source.kind() == io::ErrorKind::AddrInUse {
            DiagnosticCode::AddressInUse
        } else {
            DiagnosticCode::CannotListen
        };
        let message = format!("cannot listen on {}", self.address);
        Diagnostic::new(code, place, message).label(self.why.clone())
    }
}

/// The sockets of one address. They stay open as long as the address is configured, for any
/// accepting worker, because closing a socket resets the connections in its queue.
#[derive(Clone, Debug)]
pub(crate) struct BoundAddress {
    /// The bound address; includes the port that the kernel picked.
    pub(crate) at: BindAddress,
    pub(crate) sockets: Vec<Arc<Socket>>,
    /// File of a Unix socket that this process owns.
    pub(crate) file: Option<Arc<SocketFile>>,
    /// Bound by this process or a predecessor, not by a service manager.
    pub(crate) owned: bool,
}

impl BoundAddress {
    /// An address that no socket listens on.
    pub(crate) fn without_sockets(address: &BindAddress) -> Self {
        Self {
            at: address.clone(),
            sockets: Vec::new(),
            file: None,
            owned: true,
        }
    }

    /// Sockets from another process or a service manager. `None` if they cannot be listened on. The
    /// file of a Unix socket that is `owned` is kept until this process owns it; without its file
    /// the socket could not be found.
    pub(crate) fn from_sockets(
        at: &BindAddress,
        sockets: Vec<Arc<Socket>>,
        owned: bool,
    ) -> Option<Self> {
        let at = match at {
            BindAddress::Tcp(_) => {
                let bound = sockets.first()?.local_addr().ok()?;
                BindAddress::Tcp(bound.as_socket()?)
            }
            BindAddress::Unix(_) => at.clone(),
        };
        let file = match &at {
            BindAddress::Unix(path) if owned => Some(Arc::new(SocketFile::at(path).ok()?)),
            BindAddress::Unix(_) | BindAddress::Tcp(_) => None,
        };
        if let Some(file) = &file {
            file.set_on_drop(OnDrop::Keep);
        }
        for socket in &sockets {
            socket.set_nonblocking(true).ok()?;
        }
        Some(Self {
            at,
            sockets,
            file,
            owned,
        })
    }

    /// Returns true if clients can find the address: another process may have removed the file of a
    /// Unix socket.
    pub(crate) fn is_there(&self) -> bool {
        self.file.as_ref().is_none_or(|file| file.is_there())
    }

    /// Binds the address for `count` workers: each has its own socket where sockets can share the
    /// address. New sockets do not listen yet. An address without sockets is kept without.
    pub(crate) fn widened(&self, count: usize) -> Self {
        let mut wide = self.clone();
        let BindAddress::Tcp(address) = self.at else {
            return wide;
        };
        if self.sockets.is_empty() {
            return wide;
        }
        let sharing = |socket: &Arc<Socket>| socket.reuse_port().unwrap_or_default();
        if !self.sockets.iter().all(sharing) {
            return wide;
        }
        while wide.sockets.len() < count {
            match tcp::open(address) {
                Ok(socket) => wide.sockets.push(Arc::new(socket)),
                Err(error) => {
                    tracing::warn!(%address, %error, "workers share sockets");
                    break;
                }
            }
        }
        wide
    }

    /// Returns true if any of the sockets listens.
    pub(crate) fn listens(&self) -> bool {
        let mut sockets = self.sockets.iter();
        sockets.any(|socket| socket.is_listener().unwrap_or_default())
    }

    /// Starts listening on the sockets that do not yet.
    pub(crate) fn listen(&self, backlog: u32) -> Result<(), BindError> {
        for socket in &self.sockets {
            if !socket.is_listener().unwrap_or_default() {
                let listening = socket.listen(backlog::queue_length(backlog));
                listening.map_err(|source| BindError::new(&self.at, source))?;
            }
        }
        Ok(())
    }

    /// Sets the length of each socket's accept queue.
    pub(crate) fn set_backlog(&self, backlog: u32) {
        if let Some(limit) = backlog::max_queue_length().filter(|limit| *limit < backlog) {
            tracing::warn!(address = %self.at, backlog, limit, "the system lets fewer connections wait");
        }
        let length = backlog::queue_length(backlog);
        for socket in &self.sockets {
            if let Err(error) = socket.listen(length) {
                tracing::error!(address = %self.at, %error, "the backlog stays as it was");
            }
        }
    }
}

/// Returns true if this host cannot bind both addresses at once. Sockets of IPv6 take no addresses
/// of IPv4.
pub(crate) fn overlaps(one: &BindAddress, other: &BindAddress) -> bool {
    let (BindAddress::Tcp(one), BindAddress::Tcp(other)) = (one, other) else {
        return one == other;
    };
    let (ip, other_ip) = (one.ip(), other.ip());
    let is_wide = ip.is_unspecified() || other_ip.is_unspecified();
    let is_same_host = ip == other_ip || is_wide && ip.is_ipv4() == other_ip.is_ipv4();
    is_same_host && one.port() == other.port() && one.port() != 0
}

/// The holder `at`, an address of the active configuration that the next one does not have.
pub(crate) fn still_bound(at: &BindAddress) -> String {
    format!("this process still has {at}, of the active configuration: remove it in a reload first")
}

/// Checks that a listener could bind the TCP port of `address` now. Nothing listens on it.
///
/// # Errors
/// [`BindError`] with the reason.
pub fn probe_tcp(address: SocketAddr) -> Result<(), BindError> {
    let fault = |source| BindError::new(&BindAddress::Tcp(address), source);
    tcp::probe(address).map_err(fault)
}

/// Checks that a listener with HTTP/3 could bind the UDP port of `address` now.
///
/// # Errors
/// [`BindError`] with the reason.
pub fn probe_udp(address: SocketAddr) -> Result<(), BindError> {
    udp::probe(address).map_err(|source| BindError::udp(address, source))
}

/// Binds `address` for `count` workers; the kernel spreads connections over their sockets. No
/// connection arrives before [`BoundAddress::listen`], so a later failure of the start strands no
/// client.
pub(crate) fn bind(
    address: &BindAddress,
    backlog: u32,
    count: usize,
) -> Result<BoundAddress, BindError> {
    let bound = match address {
        // Sockets that share a port would silently take half of another process's connections.
        BindAddress::Tcp(wanted) => tcp::probe(*wanted).and_then(|()| {
            let first = Arc::new(tcp::open(*wanted)?);
            let missing = io::Error::from(io::ErrorKind::AddrNotAvailable);
            BoundAddress::from_sockets(address, vec![first], true).ok_or(missing)
        }),
        BindAddress::Unix(path) => bind_file(address, path, backlog),
    };
    let bound = bound.map_err(|source| BindError::new(address, source))?;
    Ok(bound.widened(count))
}

/// Binds UDP sockets for `count` workers at the TCP address of `bound`. `None` for a Unix socket.
/// If `is_ours` is true, this process may already have sockets there, with ending connections.
pub(crate) fn bind_datagrams(
    bound: &BoundAddress,
    count: usize,
    is_ours: bool,
) -> Result<Option<Vec<Arc<Socket>>>, BindError> {
    let BindAddress::Tcp(address) = bound.at else {
        return Ok(None);
    };
    let sockets = udp::bind(address, count, is_ours);
    let sockets = sockets.map_err(|source| BindError::udp(address, source))?;
    Ok(Some(sockets))
}

/// Opens further UDP sockets at the address of `bound`, until there are `count`.
pub(crate) fn widen_datagrams(bound: &BoundAddress, sockets: &mut Vec<Arc<Socket>>, count: usize) {
    if let BindAddress::Tcp(address) = bound.at {
        udp::widen(sockets, address, count);
    }
}

/// Indexes of the sockets that one of `workers` workers uses, out of `sockets`: each socket has a
/// worker, and each worker a socket.
pub(crate) fn share(sockets: usize, worker: usize, workers: usize) -> Vec<usize> {
    let shared = worker.checked_rem(sockets).filter(|_| worker >= sockets);
    let own = |socket: &usize| socket.checked_rem(workers) == Some(worker);
    (0..sockets)
        .filter(|socket| own(socket) || Some(*socket) == shared)
        .collect()
}

fn bind_file(address: &BindAddress, path: &Path, backlog: u32) -> io::Result<BoundAddress> {
    let (socket, file) = open_unix(path, backlog, Some(SOCKET_MODE))?;
    socket.set_nonblocking(true)?;
    Ok(BoundAddress {
        at: address.clone(),
        sockets: vec![Arc::new(socket)],
        file: Some(Arc::new(file)),
        owned: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(port: u16) -> BindAddress {
        BindAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    fn listening(port: u16, backlog: u32, count: usize) -> BoundAddress {
        let bound = bind(&local(port), backlog, count).unwrap();
        bound.listen(backlog).unwrap();
        bound
    }

    fn address(bound: &BoundAddress) -> SocketAddr {
        match bound.at {
            BindAddress::Tcp(address) => address,
            BindAddress::Unix(_) => panic!("a file"),
        }
    }

    #[test]
    fn all_sockets_of_an_address_share_the_port_the_system_chose() {
        let bound = bind(&local(0), 16, 3).unwrap();

        let ports: Vec<_> = bound
            .sockets
            .iter()
            .map(|socket| socket.local_addr().unwrap().as_socket().unwrap())
            .collect();
        assert_eq!(ports, [address(&bound); 3]);
    }

    #[test]
    fn a_port_in_use_is_reported_even_though_ours_could_share_it() {
        let other = listening(0, 16, 1);

        let fault = bind(&local(address(&other).port()), 16, 1).unwrap_err();
        assert_eq!(fault.source.kind(), io::ErrorKind::AddrInUse);
        assert!(fault.to_string().contains("in use by another process"));
    }

    #[test]
    fn wide_addresses_overlap_with_those_of_their_family() {
        let cases = [
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("[::]:80", "[::1]:80", true),
            ("[::]:80", "127.0.0.1:80", false),
            ("0.0.0.0:80", "[::]:80", false),
            ("0.0.0.0:80", "0.0.0.0:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
        ];
        for (one, other, expected) in cases {
            let [a, b] = [one, other].map(|text| BindAddress::Tcp(text.parse().unwrap()));
            assert_eq!(overlaps(&a, &b), expected, "{one} and {other}");
            assert_eq!(overlaps(&b, &a), expected, "{other} and {one}");
        }
    }

    #[test]
    fn a_listener_has_its_backlog() {
        let bound = listening(0, 1, 1);

        let wait = std::time::Duration::from_millis(100);
        let connect = |_| std::net::TcpStream::connect_timeout(&address(&bound), wait);
        // One more than requested, because Linux compares with "greater than".
        assert_eq!((0..6).flat_map(connect).collect::<Vec<_>>().len(), 2);
    }

    #[test]
    fn every_socket_is_served_and_every_worker_serves() {
        let bound = bind(&local(0), 16, 3).unwrap();

        for workers in 1..8 {
            let shares: Vec<_> = (0..workers)
                .map(|one| share(bound.sockets.len(), one, workers))
                .collect();
            assert!(shares.iter().all(|share| !share.is_empty()), "{shares:?}");
            for socket in 0..3 {
                let served = shares.iter().any(|share| share.contains(&socket));
                assert!(served, "{socket} of {shares:?}");
            }
        }
        assert_eq!(share(bound.sockets.len(), 1, 2), [1]);
        assert_eq!(share(bound.sockets.len(), 0, 2), [0, 2]);
        assert_eq!(share(bound.sockets.len(), 4, 5), [1]);
    }

    #[test]
    fn sockets_that_do_not_share_their_address_are_shared_by_workers() {
        let foreign = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let bound =
            BoundAddress::from_sockets(&local(0), vec![Arc::new(foreign.into())], false).unwrap();

        assert_eq!(bound.widened(4).sockets.len(), 1);
    }
}
