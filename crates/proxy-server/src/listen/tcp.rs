//! TCP sockets that share their address, one for each worker.

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;

/// Whether nobody else listens on `address`: a socket that does not share must be able to bind it.
pub(super) fn probe(address: SocketAddr) -> io::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    let socket = socket(address)?;
    socket.bind(&SockAddr::from(address))
}

/// Listens on `address`, beside whoever else of this user does.
pub(super) fn open(address: SocketAddr, backlog: u32) -> io::Result<Socket> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    // Accepted sockets inherit it, which saves a system call for each.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(super::length(backlog))?;
    Ok(socket)
}

/// `error` in words an operator can act on.
pub(super) fn why(error: &io::Error) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind grows")]
    match error.kind() {
        io::ErrorKind::AddrInUse => "the port is in use by another process".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied; ports below 1024 need CAP_NET_BIND_SERVICE".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this host does not have that address".to_owned(),
        _ => error.to_string(),
    }
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
