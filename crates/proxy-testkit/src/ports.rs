//! Unused ports.

use crate::journal::Journal;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range of ephemeral ports.
const FIRST_PORT: u16 = 10_240;
const PORT_COUNT: u16 = 22_000;

/// A socket for each port that was given away. No test uses UDP in this range: the sockets are claims that
/// other processes see, and that the kernel removes with this process.
static CLAIMS: LazyLock<Journal<UdpSocket>> = LazyLock::new(Journal::default);
static NEXT: AtomicU16 = AtomicU16::new(0);

/// A free port of 127.0.0.1, below 32768. No other call returns it while this process lives, in this
/// process or in another one, whether a program listens there or not.
#[must_use]
pub fn free_port() -> u16 {
    let start = u16::try_from(std::process::id().wrapping_mul(131) % u32::from(PORT_COUNT));
    let start = start.expect("a remainder is small");
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST_PORT + (start + step % PORT_COUNT) % PORT_COUNT;
        let address = (Ipv4Addr::LOCALHOST, port);
        let Ok(claim) = UdpSocket::bind(address) else {
            continue;
        };
        if TcpListener::bind(address).is_ok() {
            CLAIMS.push(claim);
            return port;
        }
    }
}

/// An address of 127.0.0.1 at which connections are refused.
#[must_use]
pub fn closed_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()))
}
