//! Limits on open connections by client address, so that one address cannot use up all of them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Length of the IPv6 prefix that counts as one address.
const SITE_PREFIX: u32 = 48;

/// Open connections by IPv4 address or IPv6 prefix.
#[derive(Debug)]
pub(crate) struct Peers {
    max_connections: usize,
    by_site: BTreeMap<IpAddr, Arc<Site>>,
}

#[derive(Debug, Default)]
struct Site {
    open: AtomicUsize,
    /// Connections that have not sent a request yet.
    silent: AtomicUsize,
}

/// Counts one open connection until it is dropped.
#[derive(Debug)]
pub(crate) struct PeerConnection {
    site: Arc<Site>,
    has_spoken: AtomicBool,
    spoken: Notify,
}

impl Peers {
    pub(crate) fn new(max_connections: usize) -> Self {
        Self {
            max_connections,
            by_site: BTreeMap::new(),
        }
    }

    /// Counts a connection of `peer`, with `free` connections left in total. Every connection is
    /// admitted while a quarter is free, because a whole fleet may share one address. After that,
    /// returns `None` for an address that has a quarter of all connections open, or a sixteenth
    /// without a request.
    pub(crate) fn admit(&mut self, peer: IpAddr, free: usize) -> Option<PeerConnection> {
        let reserve = self.max_connections / 4;
        let max_silent = (self.max_connections / 16).max(1);
        self.by_site.retain(|_, site| Arc::strong_count(site) > 1);
        let site = Arc::clone(self.by_site.entry(site(peer)).or_default());
        let (open, silent) = (
            site.open.load(Ordering::Relaxed),
            site.silent.load(Ordering::Relaxed),
        );
        if free < reserve && (reserve <= open || max_silent <= silent) {
            return None;
        }
        site.open.fetch_add(1, Ordering::Relaxed);
        site.silent.fetch_add(1, Ordering::Relaxed);
        Some(PeerConnection {
            site,
            has_spoken: AtomicBool::new(false),
            spoken: Notify::new(),
        })
    }
}

impl PeerConnection {
    /// Records the first request.
    pub(crate) fn speak(&self) {
        if !self.has_spoken.swap(true, Ordering::Relaxed) {
            self.site.silent.fetch_sub(1, Ordering::Relaxed);
            self.spoken.notify_one();
        }
    }

    /// Waits for the first request.
    pub(crate) async fn spoken(&self) {
        self.spoken.notified().await;
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        self.speak();
        self.site.open.fetch_sub(1, Ordering::Relaxed);
    }
}

fn site(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let mask = u128::MAX << (Ipv6Addr::BITS - SITE_PREFIX);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Opens as many connections of `peer` as are admitted, with a total of 64 and no other peer.
    fn admitted(peers: &mut Peers, peer: impl Fn(usize) -> IpAddr) -> Vec<PeerConnection> {
        let mut held = Vec::new();
        while let Some(connection) = peers.admit(peer(held.len()), 64 - held.len()) {
            held.push(connection);
        }
        held
    }

    #[test]
    fn silent_connections_of_one_address_leave_a_quarter_to_others() {
        let mut peers = Peers::new(64);
        let held = admitted(&mut peers, |_| address("192.0.2.1"));
        assert_eq!(held.len(), 49);
        assert!(peers.admit(address("192.0.2.2"), 15).is_some());
        drop(held);
        assert!(peers.admit(address("192.0.2.1"), 15).is_some());
    }

    #[test]
    fn a_site_of_ipv6_is_one_peer() {
        let mut peers = Peers::new(64);
        let of_site = |number: usize| address(&format!("2001:db8:1:{number:x}::1"));
        assert_eq!(admitted(&mut peers, of_site).len(), 49);
    }

    #[test]
    fn a_fleet_behind_one_address_has_what_others_leave() {
        let mut peers = Peers::new(64);
        let held = admitted(&mut peers, |_| address("192.0.2.1"));
        held.iter().for_each(PeerConnection::speak);
        // It holds more than a quarter, and less than a quarter is free.
        assert!(peers.admit(address("192.0.2.1"), 15).is_none());
        assert!(peers.admit(address("192.0.2.1"), 16).is_some());
    }
}
