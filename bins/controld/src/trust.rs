//! The client's address behind balancers.

use axum::http::HeaderMap;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Balancers that are trusted about the client's address.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// The networks of the balancers.
    pub(crate) fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// The address that limits and logs go by: the right-most one of `X-Forwarded-For` that is of no
    /// balancer; the peer's own unless it is one. An entry that is no address ends the search.
    pub(crate) fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
        if !self.holds(peer.ip()) {
            return peer;
        }
        let mut client = peer;
        let lines = headers.get_all(FORWARDED_FOR).iter().rev();
        let texts = lines.filter_map(|line| line.to_str().ok());
        for entry in texts.flat_map(|text| text.rsplit(',')) {
            let Some(address) = address(entry.trim()) else {
                break;
            };
            client = SocketAddr::new(address, 0);
            if !self.holds(address) {
                break;
            }
        }
        client
    }

    fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// With or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let with_port = || text.parse::<SocketAddr>().ok().map(|socket| socket.ip());
    bare.parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_a_trusted_peer_names_the_client() {
        let trusted = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        for (peer, lines, expected) in [
            ("10.0.0.1:1", &["192.0.2.7"][..], "192.0.2.7"),
            ("192.0.2.1:1", &["192.0.2.7"], "192.0.2.1"),
            ("10.0.0.1:1", &["1.1.1.1, 192.0.2.7, 10.9.9.9"], "192.0.2.7"),
            ("10.0.0.1:1", &["1.1.1.1", "192.0.2.7:80"], "192.0.2.7"),
            ("10.0.0.1:1", &["[2001:db8::1]:80"], "2001:db8::1"),
            ("10.0.0.1:1", &["192.0.2.7, unknown"], "10.0.0.1"),
            ("10.0.0.1:1", &[], "10.0.0.1"),
            ("[::ffff:10.0.0.1]:1", &["192.0.2.7"], "192.0.2.7"),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED_FOR, HeaderValue::from_static(line));
            }
            let client = trusted.client(peer.parse().unwrap(), &headers);
            assert_eq!(client.ip().to_string(), expected, "{peer} {lines:?}");
        }
    }
}
