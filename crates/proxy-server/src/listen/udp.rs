//! UDP sockets that share an address, one for each worker.

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Binds `address` for `count` workers. Fails if another process has the address; with `is_ours`,
/// sockets of this process may have it.
pub(super) fn bind(
    address: SocketAddr,
    count: usize,
    is_ours: bool,
) -> io::Result<Vec<Arc<Socket>>> {
    if !is_ours {
        // A socket that shares the port would take part of another process's datagrams.
        probe(address)?;
    }
    let mut sockets = vec![Arc::new(open(address)?)];
    widen(&mut sockets, address, count);
    Ok(sockets)
}

/// Checks that no other socket has `address`.
pub(super) fn probe(address: SocketAddr) -> io::Result<()> {
    socket(address)?.bind(&SockAddr::from(address))
}

/// Opens sockets until there are `count`, if the existing ones share their address.
pub(super) fn widen(sockets: &mut Vec<Arc<Socket>>, address: SocketAddr, count: usize) {
    let shared = |socket: &Arc<Socket>| socket.reuse_port().unwrap_or_default();
    if !sockets.iter().all(shared) {
        return;
    }
    while sockets.len() < count {
        match open(address) {
            Ok(socket) => sockets.push(Arc::new(socket)),
            Err(error) => {
                tracing::warn!(%address, %error, "workers share sockets for datagrams");
                break;
            }
        }
    }
}

/// `error` with an instruction for operators.
pub(super) fn why(address: SocketAddr, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::AddrInUse {
        let port = address.port();
        return format!(
            "the UDP port is in use by another process; `ss -lunp 'sport = :{port}'` shows it"
        );
    }
    super::tcp::why(address, error)
}

fn open(address: SocketAddr) -> io::Result<Socket> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM.nonblocking().cloexec(),
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_an_address_that_no_other_process_has() {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        let refused = bind(address, 1, false).unwrap_err();
        assert!(why(address, &refused).contains("ss -lunp"));

        let mut sockets = bind("127.0.0.1:0".parse().unwrap(), 1, false).unwrap();
        let address = sockets[0].local_addr().unwrap().as_socket().unwrap();
        widen(&mut sockets, address, 2);
        assert_eq!(sockets.len(), 2);
        assert!(bind(address, 1, false).is_err());
        assert!(bind(address, 1, true).is_ok());
        widen(&mut sockets, address, 3);
        assert_eq!(sockets.len(), 3);
        for socket in &sockets {
            assert_eq!(socket.local_addr().unwrap().as_socket(), Some(address));
        }
    }
}
