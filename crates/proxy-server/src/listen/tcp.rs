//! TCP sockets that share an address, one for each worker.

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;

/// Checks that no other process listens on `address`: binding a non-shared socket must succeed.
pub(super) fn probe(address: SocketAddr) -> io::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    let socket = socket(address)?;
    socket.bind(&SockAddr::from(address))
}

/// A socket bound to `address`, shared with other sockets of this user. It does not listen yet.
pub(super) fn open(address: SocketAddr) -> io::Result<Socket> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    // Accepted sockets inherit the option, which saves a system call for each.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

/// `error` with an instruction for operators.
pub(super) fn why(address: SocketAddr, error: &io::Error) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind grows")]
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let port = address.port();
            format!("the port is in use by another process; `ss -ltnp 'sport = :{port}'` shows it")
        }
        io::ErrorKind::PermissionDenied => {
            "permission denied; ports below 1024 need CAP_NET_BIND_SERVICE, or a systemd socket"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "this host does not have that address; `ip address` shows those it has".to_owned()
        }
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
