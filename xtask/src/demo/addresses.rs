//! The demo's addresses: those the quickstart names, and free ones for a run by itself.

use crate::task_error::TaskError;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::process;

/// Where the demo's four parties listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    /// proxyd, for clients.
    pub(super) web: SocketAddr,
    /// proxyd, for operators.
    pub(super) admin: SocketAddr,
    /// The first upstream.
    pub(super) one: SocketAddr,
    /// The second upstream.
    pub(super) two: SocketAddr,
}

/// The addresses that `quickstart.kdl` names.
pub(super) const QUICKSTART: Addresses = Addresses {
    web: local(8080),
    admin: local(9090),
    one: local(18081),
    two: local(18082),
};

/// Below the ports that the system hands out for outgoing connections.
const FREE_PORTS: Range<u16> = 18_000..19_000;
const BACKLOG: i32 = 128;

/// Listens, for an upstream.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener, TaskError> {
    TcpListener::bind(address)
        .map_err(|cause| TaskError::Failed(format!("cannot listen on {address}: {cause}")))
}

/// As many listeners as wanted, on free ports.
pub(super) fn free<const N: usize>() -> Result<[TcpListener; N], TaskError> {
    // Two runs at once begin at different places.
    let first = u16::try_from(process::id() % 1_000).unwrap_or_default();
    let (start, end) = (FREE_PORTS.start + first, FREE_PORTS.end);
    let found: Vec<TcpListener> = (start..end)
        .chain(FREE_PORTS.start..start)
        .filter_map(|port| listen_alone(local(port)).ok())
        .take(N)
        .collect();
    found
        .try_into()
        .map_err(|_| TaskError::Failed(format!("too few free ports in {FREE_PORTS:?}")))
}

/// Listens without `SO_REUSEADDR`: the port stays ours even when the listener is shut down.
fn listen_alone(address: SocketAddr) -> rustix::io::Result<TcpListener> {
    let family = AddressFamily::INET;
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

impl Addresses {
    /// The configuration with every address of the quickstart replaced by its own.
    pub(super) fn moved(&self, config: &str) -> Result<String, TaskError> {
        let Self {
            web,
            admin,
            one,
            two,
        } = self;
        let moves = [
            (QUICKSTART.web, web),
            (QUICKSTART.admin, admin),
            (QUICKSTART.one, one),
            (QUICKSTART.two, two),
        ];
        let mut text = config.to_owned();
        for (from, to) in moves {
            let quoted = format!("\"{from}\"");
            if !text.contains(&quoted) {
                return Err(TaskError::Failed(format!(
                    "the quickstart does not name {from}, which the demo counts on"
                )));
            }
            text = text.replace(&quoted, &format!("\"{to}\""));
        }
        Ok(text)
    }
}

const fn local(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = include_str!("../../../examples/configs/quickstart.kdl");

    #[test]
    fn the_quickstart_moves_to_free_ports_whole() {
        let listeners = free::<4>().unwrap();
        let [web, admin, one, two] = listeners.map(|held| held.local_addr().unwrap());
        let at = Addresses {
            web,
            admin,
            one,
            two,
        };

        let moved = at.moved(OURS).unwrap();
        for old in ["8080\"", "9090\"", "18081\"", "18082\""] {
            let still = moved.contains(&format!("127.0.0.1:{old}"));
            assert!(
                !still
                    || [web, admin, one, two]
                        .iter()
                        .any(|a| old.contains(&a.port().to_string()))
            );
        }
        assert!(moved.contains(&web.to_string()));
    }

    #[test]
    fn a_quickstart_without_the_addresses_is_refused() {
        assert!(QUICKSTART.moved("listeners {}").is_err());
    }
}
