//! Listening sockets: one for each worker and address, all bound before any is used.

use proxy_model::BindAddress;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {why}")]
pub struct BindFault {
    /// The address, as it was written.
    pub address: String,
    /// What stands in the way, in words an operator can act on.
    pub why: String,
    /// What the operating system said.
    #[source]
    pub source: io::Error,
}

/// The sockets of one address, one for each worker.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Where they are bound; tells the port where the system chose it.
    pub(crate) address: SocketAddr,
    pub(crate) sockets: Vec<TcpListener>,
}

/// Binds `count` sockets to `address`; connections are spread over them by the kernel.
pub(crate) fn bind(
    address: &BindAddress,
    backlog: u32,
    count: usize,
) -> Result<Sockets, BindFault> {
    if let BindAddress::Tcp(wanted) = address {
        // Sockets that share a port would silently take half of another process's connections.
        probe(*wanted).map_err(|source| fault(address, source))?;
    }
    bind_beside(address, backlog, count)
}

/// The same, beside sockets of this process.
pub(crate) fn bind_beside(
    address: &BindAddress,
    backlog: u32,
    count: usize,
) -> Result<Sockets, BindFault> {
    let BindAddress::Tcp(wanted) = address else {
        let source = io::Error::from(io::ErrorKind::Unsupported);
        return Err(fault(address, source));
    };
    let mut bound = *wanted;
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = open(bound, backlog).map_err(|source| fault(address, source))?;
        bound = socket
            .local_addr()
            .map_err(|source| fault(address, source))?;
        sockets.push(socket);
    }
    Ok(Sockets {
        address: bound,
        sockets,
    })
}

/// Takes the socket for `address` out of those that were opened for this process, if there is one.
/// Workers share it: the queue of waiting connections is one.
pub(crate) fn inherit(
    inherited: &mut Vec<TcpListener>,
    address: &BindAddress,
    count: usize,
) -> Option<Sockets> {
    let BindAddress::Tcp(wanted) = address else {
        return None;
    };
    let is_wanted = |socket: &TcpListener| socket.local_addr().is_ok_and(|bound| bound == *wanted);
    let place = inherited.iter().position(is_wanted)?;
    let socket = inherited.swap_remove(place);
    socket.set_nonblocking(true).ok()?;
    let sockets: io::Result<Vec<_>> = (0..count).map(|_| socket.try_clone()).collect();
    Some(Sockets {
        address: *wanted,
        sockets: sockets.ok()?,
    })
}

/// Whether nobody else listens on `address`: a socket that does not share must be able to bind it.
fn probe(address: SocketAddr) -> io::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    let socket = socket(address)?;
    socket.bind(&SockAddr::from(address))
}

fn open(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    // Accepted sockets inherit it, which saves a system call for each.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(socket.into())
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(
        domain,
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    Ok(socket)
}

fn fault(address: &BindAddress, source: io::Error) -> BindFault {
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind grows")]
    let why = match source.kind() {
        io::ErrorKind::AddrInUse => "the port is in use by another process".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied; ports below 1024 need CAP_NET_BIND_SERVICE".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this host does not have that address".to_owned(),
        _ => source.to_string(),
    };
    BindFault {
        address: address.to_string(),
        why,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(port: u16) -> BindAddress {
        BindAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    #[test]
    fn all_sockets_of_an_address_share_the_port_the_system_chose() {
        let bound = bind(&local(0), 16, 3).unwrap();

        let ports: Vec<_> = bound
            .sockets
            .iter()
            .map(|socket| socket.local_addr().unwrap().port())
            .collect();
        assert_eq!(ports, [bound.address.port(); 3]);
    }

    #[test]
    fn a_port_in_use_is_told_even_though_ours_could_share_it() {
        let other = bind(&local(0), 16, 1).unwrap();

        let fault = bind(&local(other.address.port()), 16, 1).unwrap_err();
        assert_eq!(fault.source.kind(), io::ErrorKind::AddrInUse);
        assert!(fault.to_string().contains("in use by another process"));
    }

    #[test]
    fn a_listener_has_its_backlog() {
        let bound = bind(&local(0), 1, 1).unwrap();

        let wait = std::time::Duration::from_millis(100);
        let connected =
            (0..6).flat_map(|_| std::net::TcpStream::connect_timeout(&bound.address, wait));
        // One more than was asked for: Linux compares with "greater than".
        assert_eq!(connected.collect::<Vec<_>>().len(), 2);
    }
}
