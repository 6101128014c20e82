//! Client addresses behind trusted load balancers.

use axum::http::HeaderMap;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

const FORWARDED_FOR: &str = "x-forwarded-for";
/// Header fields that show by their presence that a request was forwarded.
const FORWARDING: &[&str] = &[FORWARDED_FOR, "forwarded", "x-real-ip", "via"];

/// Networks of load balancers with a trusted `X-Forwarded-For`.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    pub(crate) fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Returns the client's address for limits and logs: the peer's, unless the peer is a balancer.
    /// Then the last entry of `X-Forwarded-For` that is not a balancer's; the search stops at an
    /// entry that is not an address.
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

    /// Returns true if the request is from this machine, and was not forwarded.
    pub(crate) fn is_local(&self, peer: SocketAddr, headers: &HeaderMap) -> bool {
        let client = self.client(peer, headers).ip().to_canonical();
        let is_forwarded = FORWARDING.iter().any(|name| headers.contains_key(*name));
        client.is_loopback() && !is_forwarded
    }

    /// Returns true if the peer may connect without TLS: a balancer, or this machine.
    pub(crate) fn may_speak_plain(&self, peer: IpAddr) -> bool {
        peer.to_canonical().is_loopback() || self.holds(peer)
    }

    /// Returns true if the address is a balancer's.
    pub(crate) fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

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
    fn only_requests_of_this_machine_are_local() {
        let trusted = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        for (peer, field, expected) in [
            ("127.0.0.1:1", None, true),
            ("[::1]:1", None, true),
            ("[::ffff:127.0.0.1]:1", None, true),
            ("192.0.2.1:1", None, false),
            ("10.0.0.1:1", None, false),
            ("10.0.0.1:1", Some("127.0.0.1"), false),
            ("127.0.0.1:1", Some("127.0.0.1"), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = field {
                headers.append(FORWARDED_FOR, HeaderValue::from_static(value));
            }
            let local = trusted.is_local(peer.parse().unwrap(), &headers);
            assert_eq!(local, expected, "{peer} {field:?}");
        }
    }

    #[test]
    fn without_tls_only_balancers_and_this_machine_are_served() {
        let trusted = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        for (peer, expected) in [
            ("10.1.1.1", true),
            ("::ffff:10.1.1.1", true),
            ("127.0.0.2", true),
            ("::1", true),
            ("192.0.2.1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(
                trusted.may_speak_plain(peer.parse().unwrap()),
                expected,
                "{peer}"
            );
        }
    }

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
