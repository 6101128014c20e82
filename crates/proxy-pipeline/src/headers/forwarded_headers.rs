//! The client's address, and the header fields that carry it to the upstream.
//!
//! Claims of untrusted peers are removed: see [`crate::headers::forwarding_claims`].

use crate::headers::forwarding_claims::remove_claims;
use crate::headers::indexed_headers::{IndexedHeaders, KnownHeaders};
use crate::headers::names;
use http::Version;
use http::header::{FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue, VIA};
use ipnet::IpNet;
use proxy_framing::{ProxiedConnection, ProxyVersion, client_of};
use proxy_http1::{VerbatimFields, write_line};
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Beginnings of lines: each is written with one copy.
const FORWARDED_FOR_LINE: &[u8] = b"x-forwarded-for: ";
const FORWARDED_HOST_LINE: &[u8] = b"x-forwarded-host: ";
const CORRELATION_ID_LINE: &[u8] = b"x-correlation-id: ";

const HTTP: HeaderValue = HeaderValue::from_static("http");
const HTTPS: HeaderValue = HeaderValue::from_static("https");

/// The peer of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The peer's address; with the PROXY protocol, the one in the header.
    pub ip: IpAddr,
    /// The address as a header value, made once for all requests of the connection.
    pub ip_value: HeaderValue,
    /// The port of that address; `None` at a Unix socket.
    pub port: Option<u16>,
    /// The address that the client connected to: this host's or, with the PROXY protocol, the one
    /// in the header; `None` at a Unix socket.
    pub local: Option<SocketAddr>,
    /// True if the addresses are from a PROXY protocol header.
    pub is_named_by_proxy: bool,
    /// True if the peer's forwarding headers are trusted.
    pub trusted: Cell<bool>,
    /// True if the connection is encrypted.
    pub tls: bool,
}

impl Peer {
    /// The peer at `ip`, trusted if it is in one of `trusted`.
    #[must_use]
    pub fn new(ip: IpAddr, tls: bool, trusted: &[IpNet]) -> Self {
        let ip = ip.to_canonical();
        let ip_value = HeaderValue::from_str(&ip.to_string())
            .unwrap_or_else(|_| HeaderValue::from_static("unknown"));
        Self {
            ip,
            ip_value,
            port: None,
            local: None,
            is_named_by_proxy: false,
            trusted: Cell::new(is_trusted(ip, trusted)),
            tls,
        }
    }

    /// The peer in a PROXY protocol header, trusted if it is in one of `trusted`.
    #[must_use]
    pub fn named_by_proxy(proxied: ProxiedConnection, tls: bool, trusted: &[IpNet]) -> Self {
        let ProxiedConnection {
            source,
            destination,
        } = proxied;
        Self {
            port: Some(source.port()),
            local: Some(destination),
            is_named_by_proxy: true,
            ..Self::new(source.ip(), tls, trusted)
        }
    }

    /// Sets the port of the peer's address.
    #[must_use]
    pub fn with_port(self, port: u16) -> Self {
        Self {
            port: Some(port),
            ..self
        }
    }

    /// Sets the local address that the peer is connected to.
    #[must_use]
    pub fn with_local(self, local: Option<SocketAddr>) -> Self {
        Self { local, ..self }
    }

    /// The PROXY protocol header for a request of the client at `client_ip`. The port is known if
    /// the client is the peer itself. A client of a Unix socket has no address.
    #[cold]
    pub(crate) fn proxy_header(&self, version: ProxyVersion, client_ip: IpAddr) -> Vec<u8> {
        let is_peer = client_ip == self.ip;
        if is_peer && self.port.is_none() {
            return version.local_header();
        }
        let port = self.port.filter(|_| is_peer).unwrap_or_default();
        let local = self.local.unwrap_or_else(|| match client_ip {
            IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        });
        version.header(SocketAddr::new(client_ip, port), local)
    }

    /// Withdraws the trust in the peer.
    #[must_use]
    pub fn without_trust(self) -> Self {
        self.trusted.set(false);
        self
    }

    /// Revokes the trust unless the peer is in one of `trusted`.
    #[cold]
    pub fn update_trust(&self, trusted: &[IpNet]) {
        let before = self.trusted.get();
        self.trusted.set(before && is_trusted(self.ip, trusted));
    }
}

/// The client address for limits, hashing, logs and agents: the peer's, or behind trusted peers the
/// right-most hop of `X-Forwarded-For` that is not trusted.
pub(crate) fn client_ip(peer: &Peer, headers: &IndexedHeaders, trusted: &[IpNet]) -> IpAddr {
    if !peer.trusted.get() || !headers.has(KnownHeaders::FORWARDING) {
        return peer.ip;
    }
    let lines = headers.as_map().get_all(names::FORWARDED_FOR).iter();
    let lines = lines.map(HeaderValue::as_bytes);
    client_of(peer.ip, lines, |ip| is_trusted(ip, trusted))
}

/// The proxy's entry in `Via` for a message received in `version`. [RFC 9110 §7.6.3]
#[inline]
pub(crate) fn via(version: Version) -> HeaderValue {
    // Constants, so that the bytes are not validated in each call.
    const HTTP_10: HeaderValue = HeaderValue::from_static("1.0 proxyd");
    const HTTP_11: HeaderValue = HeaderValue::from_static("1.1 proxyd");
    const HTTP_2: HeaderValue = HeaderValue::from_static("2 proxyd");
    const HTTP_3: HeaderValue = HeaderValue::from_static("3 proxyd");
    match version {
        Version::HTTP_10 => HTTP_10,
        Version::HTTP_2 => HTTP_2,
        Version::HTTP_3 => HTTP_3,
        _ => HTTP_11,
    }
}

/// The forwarding fields for a head without any: written after the head's own fields, which is
/// cheaper than inserting them.
#[derive(Debug)]
pub(crate) struct ForwardedHeaders {
    /// The head's own fields, if they are not in its map.
    pub(crate) verbatim: Option<VerbatimFields>,
    /// The value of `Via`, if the listener adds it.
    pub(crate) via: Option<HeaderValue>,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) lacks_host: bool,
}

impl ForwardedHeaders {
    /// Appends the field lines.
    pub(crate) fn write(&self, peer: &Peer, correlation_id: &[u8], out: &mut Vec<u8>) {
        if let Some(verbatim) = &self.verbatim {
            verbatim.write_end_to_end(out);
        }
        if let Some(host) = self.host.as_ref().filter(|_| self.lacks_host) {
            write_line(&HOST, host, out);
        }
        out.extend_from_slice(FORWARDED_FOR_LINE);
        out.extend_from_slice(peer.ip_value.as_bytes());
        out.extend_from_slice(if peer.tls {
            b"\r\nx-forwarded-proto: https\r\n"
        } else {
            b"\r\nx-forwarded-proto: http\r\n"
        });
        if let Some(host) = &self.host {
            out.extend_from_slice(FORWARDED_HOST_LINE);
            out.extend_from_slice(host.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        if let Some(via) = &self.via {
            write_line(&VIA, via, out);
        }
        out.extend_from_slice(CORRELATION_ID_LINE);
        out.extend_from_slice(correlation_id);
        out.extend_from_slice(b"\r\n");
    }
}

/// Sets the forwarding fields: client, protocol and host. With `has_claims`, `headers` may already
/// have such fields.
#[inline]
pub(crate) fn apply(
    peer: &Peer,
    headers: &mut HeaderMap,
    has_claims: bool,
    via: Option<HeaderValue>,
    host: Option<HeaderValue>,
) {
    let scheme = if peer.tls { HTTPS } else { HTTP };
    if has_claims {
        return apply_over_present(peer, headers, scheme, via.as_ref(), host);
    }
    headers.insert(names::FORWARDED_FOR, peer.ip_value.clone());
    headers.insert(names::FORWARDED_PROTO, scheme);
    if let Some(host) = host {
        headers.insert(names::FORWARDED_HOST, host);
    }
    if let Some(via) = via {
        headers.insert(VIA, via);
    }
}

#[cold]
fn apply_over_present(
    peer: &Peer,
    headers: &mut HeaderMap,
    scheme: HeaderValue,
    via: Option<&HeaderValue>,
    host: Option<HeaderValue>,
) {
    remove_claims(headers, peer.trusted.get());
    extend_list(headers, names::FORWARDED_FOR, &peer.ip_value);
    if headers.contains_key(FORWARDED) {
        // Without this, `Forwarded` would contradict the extended `X-Forwarded-For`.
        extend_list(headers, FORWARDED, &forwarded_for(peer.ip));
    }
    if let Some(via) = via {
        extend_list(headers, VIA, via);
    }
    headers.entry(names::FORWARDED_PROTO).or_insert(scheme);
    if let Some(host) = host {
        headers.entry(names::FORWARDED_HOST).or_insert(host);
    }
}

/// The peer as the last element of `Forwarded`. [RFC 7239 §4, §6]
fn forwarded_for(ip: IpAddr) -> HeaderValue {
    let text = match ip {
        IpAddr::V4(ip) => format!("for={ip}"),
        IpAddr::V6(ip) => format!("for=\"[{ip}]\""),
    };
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("for=unknown"))
}

/// Appends `last` to the comma-separated list of all fields of this name, without empty elements at
/// the end.
fn extend_list(headers: &mut HeaderMap, name: HeaderName, last: &HeaderValue) {
    let is_void = |byte: &u8| matches!(byte, b',' | b' ' | b'\t');
    let mut list = Vec::new();
    for value in headers.get_all(&name) {
        let value = value.as_bytes();
        let Some(start) = value.iter().position(|byte| !is_void(byte)) else {
            continue;
        };
        let end = value.iter().rposition(|byte| !is_void(byte));
        list.extend_from_slice(value.get(start..=end.unwrap_or(start)).unwrap_or_default());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(last.as_bytes());
    let whole = HeaderValue::from_bytes(&list).unwrap_or_else(|_| last.clone());
    headers.insert(name, whole);
}

fn is_trusted(ip: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|net| net.contains(&ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUSTED: &str = "10.0.0.0/8";

    fn peer(ip: &str) -> (Peer, Vec<IpNet>) {
        let trusted = vec![TRUSTED.parse().unwrap()];
        (Peer::new(ip.parse().unwrap(), false, &trusted), trusted)
    }

    fn head(lines: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(names::FORWARDED_FOR, HeaderValue::from_static(line));
        }
        headers
    }

    fn client(peer_ip: &str, lines: &[&'static str]) -> String {
        let (peer, trusted) = peer(peer_ip);
        let headers = IndexedHeaders::from(head(lines));
        client_ip(&peer, &headers, &trusted).to_string()
    }

    #[test]
    fn the_lines_for_an_http_1_target_are_those_of_the_map_for_any_other() {
        for (tls, lacks_host, has_host, has_via) in [
            (false, false, true, false),
            (true, true, true, true),
            (false, false, false, true),
        ] {
            let peer = Peer::new("192.0.2.1".parse().unwrap(), tls, &[]);
            let host = has_host.then(|| HeaderValue::from_static("a.test"));
            let via = has_via.then(|| via(Version::HTTP_11));
            let id = HeaderValue::from_static("an-id");
            let mut lines = Vec::new();
            let forwarded = ForwardedHeaders {
                verbatim: None,
                via: via.clone(),
                host: host.clone(),
                lacks_host,
            };
            forwarded.write(&peer, id.as_bytes(), &mut lines);
            let mut map = HeaderMap::new();
            if let Some(host) = host.as_ref().filter(|_| lacks_host) {
                map.insert(HOST, host.clone());
            }
            apply(&peer, &mut map, false, via, host);
            map.insert(names::CORRELATION_ID, id);
            let mut expected = Vec::new();
            for (name, value) in &map {
                write_line(name, value, &mut expected);
            }
            assert_eq!(
                lines.escape_ascii().to_string(),
                expected.escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn an_untrusted_peer_cannot_claim_another_address() {
        assert_eq!(client("192.0.2.1", &["1.1.1.1"]), "192.0.2.1");
    }

    #[test]
    fn the_right_most_untrusted_hop_is_the_client() {
        for (lines, expected) in [
            (&["1.1.1.1, 2.2.2.2, 10.0.0.9"][..], "2.2.2.2"),
            (&["1.1.1.1", "2.2.2.2", "10.0.0.9"], "2.2.2.2"),
            (&["10.0.0.1, 10.0.0.2"], "10.0.0.1"),
            (&["1.1.1.1, junk, 10.0.0.2"], "10.0.0.2"),
            (&["[2001:db8::1]:443"], "2001:db8::1"),
            (&["1.2.3.4:5678"], "1.2.3.4"),
            (&[""], "10.0.0.7"),
        ] {
            assert_eq!(client("10.0.0.7", lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn forwarding_headers_of_an_untrusted_peer_are_replaced() {
        let (peer, _) = peer("192.0.2.1");
        let mut headers = head(&["1.1.1.1"]);
        headers.insert(names::FORWARDED_PROTO, HTTPS);
        headers.insert(FORWARDED, HeaderValue::from_static("for=1.1.1.1"));
        headers.insert(VIA, HeaderValue::from_static("1.1 liar"));
        apply(
            &peer,
            &mut headers,
            true,
            Some(via(Version::HTTP_11)),
            Some(HeaderValue::from_static("a.test")),
        );

        assert_eq!(headers[names::FORWARDED_FOR], "192.0.2.1");
        assert_eq!(headers[names::FORWARDED_PROTO], "http");
        assert_eq!(headers[names::FORWARDED_HOST], "a.test");
        assert_eq!(headers[VIA], "1.1 proxyd");
        assert!(!headers.contains_key(FORWARDED));
    }

    #[test]
    fn an_ipv6_address_in_forwarded_is_quoted_in_brackets() {
        let ip = "2001:db8::1".parse().unwrap();

        assert_eq!(forwarded_for(ip), r#"for="[2001:db8::1]""#);
    }

    #[test]
    fn a_trusted_peer_s_lists_are_continued() {
        let (peer, _) = peer("10.0.0.7");
        let mut headers = head(&["1.1.1.1", "2.2.2.2"]);
        headers.insert(names::FORWARDED_PROTO, HTTPS);
        headers.insert(VIA, HeaderValue::from_static("2 edge"));
        apply(
            &peer,
            &mut headers,
            true,
            Some(via(Version::HTTP_11)),
            Some(HeaderValue::from_static("a.test")),
        );

        assert_eq!(headers[names::FORWARDED_FOR], "1.1.1.1, 2.2.2.2, 10.0.0.7");
        assert!(!headers.contains_key(FORWARDED), "it is not begun");
        assert_eq!(headers.get_all(names::FORWARDED_FOR).iter().count(), 1);
        assert_eq!(headers[names::FORWARDED_PROTO], "https");
        assert_eq!(headers[VIA], "2 edge, 1.1 proxyd");
    }
}
