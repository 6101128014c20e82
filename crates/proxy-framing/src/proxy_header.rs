//! The PROXY protocol header, versions 1 and 2, which carries the client's address.
//!
//! The specification is `proxy-protocol.txt` of `HAProxy`, §2. If it leaves a choice to the
//! receiver, this parser is strict: numbers without leading zeros, exactly one space between
//! fields.

mod version;

pub use version::ProxyVersion;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use version::V2_SIGNATURE;

/// Maximum size of a version 1 header, its line end included, in bytes.
const MAX_LINE_BYTES: usize = 107;

/// Size of the fixed part of version 2, in bytes.
const V2_FIXED_BYTES: usize = 16;

/// Maximum size of the addresses and extensions of version 2, in bytes.
const MAX_V2_REST_BYTES: usize = 4096;

/// The result of parsing the beginning of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// A prefix of a header: all bytes belong to it.
    Incomplete,
    /// A whole header, perhaps followed by other bytes.
    Whole {
        /// Size of the header, in bytes.
        length: usize,
        /// The ends of the client's connection; `None` for a connection of the proxy itself and for
        /// a client without an IP address.
        proxied: Option<ProxiedConnection>,
    },
    /// The bytes are not a header.
    Malformed,
}

/// The ends of a client's connection to the proxy that sent the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxiedConnection {
    /// Address of the client, as the header names it.
    pub source: SocketAddr,
    /// The address that the client connected to.
    pub destination: SocketAddr,
}

/// Parses a header at the beginning of `bytes`.
///
/// ```
/// use proxy_framing::{ProxiedConnection, ProxyHeader, proxy_header};
///
/// let bytes = b"PROXY TCP4 192.0.2.1 192.0.2.9 40000 443\r\nGET / HTTP/1.1\r\n";
/// let (source, destination) = ("192.0.2.1:40000".parse()?, "192.0.2.9:443".parse()?);
/// let proxied = Some(ProxiedConnection { source, destination });
/// assert_eq!(proxy_header(bytes), ProxyHeader::Whole { length: 42, proxied });
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn proxy_header(bytes: &[u8]) -> ProxyHeader {
    match bytes.first() {
        None => ProxyHeader::Incomplete,
        Some(b'P') => line(bytes),
        Some(b'\r') => binary(bytes),
        Some(_) => ProxyHeader::Malformed,
    }
}

fn line(bytes: &[u8]) -> ProxyHeader {
    const V1_PREFIX: &[u8] = b"PROXY ";
    let known = bytes.len().min(V1_PREFIX.len());
    if bytes.get(..known) != V1_PREFIX.get(..known) {
        return ProxyHeader::Malformed;
    }
    let window = bytes.get(..MAX_LINE_BYTES).unwrap_or(bytes);
    let Some(end) = window.windows(2).position(|at| at == b"\r\n") else {
        return if bytes.len() < MAX_LINE_BYTES {
            ProxyHeader::Incomplete
        } else {
            ProxyHeader::Malformed
        };
    };
    let text = bytes.get(V1_PREFIX.len()..end);
    let text = text.and_then(|text| std::str::from_utf8(text).ok());
    let length = end + 2;
    let is_unknown = |text: &str| text.split(' ').next() == Some("UNKNOWN");
    if text.is_some_and(is_unknown) {
        return ProxyHeader::Whole {
            length,
            proxied: None,
        };
    }
    match text.and_then(addresses_in) {
        None => ProxyHeader::Malformed,
        proxied => ProxyHeader::Whole { length, proxied },
    }
}

/// The addresses in a line of version 1; `None` if the line is malformed.
fn addresses_in(text: &str) -> Option<ProxiedConnection> {
    let mut fields = text.split(' ');
    let family = fields.next()?;
    let (source, target) = (fields.next()?, fields.next()?);
    let source_port = port(fields.next()?)?;
    let target_port = port(fields.next()?)?;
    if fields.next().is_some() {
        return None;
    }
    let (source, target) = match family {
        "TCP4" => (v4(source)?, v4(target)?),
        "TCP6" => (v6(source)?, v6(target)?),
        _ => return None,
    };
    let is_of_family = source.is_ipv4() == target.is_ipv4();
    is_of_family.then(|| ProxiedConnection {
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(target, target_port),
    })
}

fn v4(text: &str) -> Option<IpAddr> {
    text.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

fn v6(text: &str) -> Option<IpAddr> {
    text.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

fn port(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let short = text.len() == 1 || !text.starts_with('0');
    text.parse().ok().filter(|_| plain && short)
}

fn binary(bytes: &[u8]) -> ProxyHeader {
    let known = bytes.len().min(V2_SIGNATURE.len());
    if bytes.get(..known) != V2_SIGNATURE.get(..known) {
        return ProxyHeader::Malformed;
    }
    let Some((fixed, rest)) = bytes.split_first_chunk::<V2_FIXED_BYTES>() else {
        return ProxyHeader::Incomplete;
    };
    let [.., command, family, high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let proxied = match command {
        0x20 => false,
        0x21 => true,
        _ => return ProxyHeader::Malformed,
    };
    // Families without an IP address count as a connection of the proxy itself.
    let needed = match (proxied, family) {
        (true, 0x11 | 0x12) => 12,
        (true, 0x21 | 0x22) => 36,
        (true, 0x31 | 0x32) => 216,
        (true, 0) | (false, _) => 0,
        (true, _) => return ProxyHeader::Malformed,
    };
    if length < needed || MAX_V2_REST_BYTES < length {
        return ProxyHeader::Malformed;
    }
    let Some(rest) = rest.get(..length) else {
        return ProxyHeader::Incomplete;
    };
    let proxied = match needed {
        12 => addresses::<4>(rest),
        36 => addresses::<16>(rest),
        _ => None,
    };
    ProxyHeader::Whole {
        length: V2_FIXED_BYTES + length,
        proxied,
    }
}

/// The ends in a version 2 header: two addresses of `N` bytes, then two ports.
fn addresses<const N: usize>(rest: &[u8]) -> Option<ProxiedConnection>
where
    IpAddr: From<[u8; N]>,
{
    let end = |number: usize| {
        let address = *rest.get(number * N..)?.first_chunk::<N>()?;
        let port = *rest.get(2 * N + 2 * number..)?.first_chunk::<2>()?;
        Some(SocketAddr::new(
            IpAddr::from(address),
            u16::from_be_bytes(port),
        ))
    };
    Some(ProxiedConnection {
        source: end(0)?,
        destination: end(1)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(length: usize, ends: Option<(&str, &str)>) -> ProxyHeader {
        ProxyHeader::Whole {
            length,
            proxied: ends.map(|(source, destination)| ProxiedConnection {
                source: source.parse().unwrap(),
                destination: destination.parse().unwrap(),
            }),
        }
    }

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [V2_SIGNATURE, &[command, family], &length, rest].concat()
    }

    #[test]
    fn lines_of_version_1_name_the_client() {
        for (line, client) in [
            (
                "PROXY TCP4 1.2.3.4 5.6.7.8 1 65535\r\n",
                Some(("1.2.3.4:1", "5.6.7.8:65535")),
            ),
            (
                "PROXY TCP6 2001:db8::1 ::1 40000 443\r\n",
                Some(("[2001:db8::1]:40000", "[::1]:443")),
            ),
            ("PROXY UNKNOWN\r\n", None),
            ("PROXY UNKNOWN whatever it is\r\n", None),
        ] {
            assert_eq!(proxy_header(line.as_bytes()), whole(line.len(), client));
            let more = format!("{line}GET / HTTP/1.1\r\n");
            assert_eq!(proxy_header(more.as_bytes()), whole(line.len(), client));
        }
    }

    #[test]
    fn headers_of_version_2_name_the_client() {
        let four = [1, 2, 3, 4, 5, 6, 7, 8, 0, 80, 1, 187];
        let mut six = [0; 36];
        six[15] = 1;
        six[31] = 2;
        six[32..34].copy_from_slice(&443_u16.to_be_bytes());
        six[35] = 80;
        for (header, client) in [
            (v2(0x21, 0x11, &four), Some(("1.2.3.4:80", "5.6.7.8:443"))),
            (
                v2(0x21, 0x11, &[&four[..], &[4, 0, 1, 0]].concat()),
                Some(("1.2.3.4:80", "5.6.7.8:443")),
            ),
            (v2(0x21, 0x21, &six), Some(("[::1]:443", "[::2]:80"))),
            (v2(0x20, 0, &[]), None),
            (v2(0x20, 0x11, &four), None),
            (v2(0x21, 0, &[9; 7]), None),
        ] {
            assert_eq!(proxy_header(&header), whole(header.len(), client));
        }
    }

    #[test]
    fn every_beginning_of_a_header_is_incomplete() {
        let line = b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n".to_vec();
        for header in [line, v2(0x21, 0x11, &[7; 12])] {
            for end in 0..header.len() {
                assert_eq!(proxy_header(&header[..end]), ProxyHeader::Incomplete);
            }
        }
    }

    #[test]
    fn an_invalid_header_is_an_error() {
        for text in [
            "GET / HTTP/1.1\r\n",
            "proxy TCP4 1.2.3.4 5.6.7.8 1 2\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n",
            "PROXY TCP4  1.2.3.4 5.6.7.8 1 2\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 01 2\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n",
            "PROXY TCP4 ::1 ::2 1 2\r\n",
            "PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n",
            "PROXY TCP5 1.2.3.4 5.6.7.8 1 2\r\n",
            "PROXY \r\n",
        ] {
            assert_eq!(
                proxy_header(text.as_bytes()),
                ProxyHeader::Malformed,
                "{text}"
            );
        }
        assert_eq!(
            proxy_header(&[b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 200]].concat()),
            ProxyHeader::Malformed
        );
        for header in [
            v2(0x11, 0x11, &[0; 12]),
            v2(0x22, 0x11, &[0; 12]),
            v2(0x21, 0x11, &[0; 11]),
            v2(0x21, 0x21, &[0; 35]),
            v2(0x21, 0x41, &[0; 36]),
            v2(0x21, 0x11, &[0; 4097]),
            b"\r\nGET".to_vec(),
        ] {
            assert_eq!(proxy_header(&header), ProxyHeader::Malformed, "{header:?}");
        }
    }

    #[test]
    fn a_header_is_read_back_as_its_client() {
        for (source, destination) in [
            ("192.0.2.1:40000", "192.0.2.9:443"),
            ("[2001:db8::1]:1", "[2001:db8::9]:65535"),
            ("192.0.2.1:0", "[2001:db8::9]:443"),
            ("[2001:db8::1]:40000", "192.0.2.9:443"),
            ("[::ffff:192.0.2.1]:40000", "192.0.2.9:443"),
        ] {
            let source: SocketAddr = source.parse().unwrap();
            let destination: SocketAddr = destination.parse().unwrap();
            for version in [ProxyVersion::V1, ProxyVersion::V2] {
                let mut bytes = version.header(source, destination);
                let length = bytes.len();
                bytes.extend_from_slice(b"GET / HTTP/1.1\r\n");
                let ProxyHeader::Whole {
                    length: read,
                    proxied: Some(proxied),
                } = proxy_header(&bytes)
                else {
                    panic!("{version} {source}: {:?}", proxy_header(&bytes));
                };
                assert_eq!(read, length);
                for (end, sent) in [(proxied.source, source), (proxied.destination, destination)] {
                    assert_eq!(end.port(), sent.port());
                    assert_eq!(end.ip().to_canonical(), sent.ip().to_canonical());
                }
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let (source, destination) = ("192.0.2.1:40000".parse(), "192.0.2.9:443".parse());
        let (source, destination): (SocketAddr, SocketAddr) =
            (source.unwrap(), destination.unwrap());
        let mixed = "[2001:db8::9]:443".parse().unwrap();
        assert_eq!(
            ProxyVersion::V1.header(source, mixed),
            b"PROXY TCP6 0:0:0:0:0:ffff:c000:201 2001:db8::9 40000 443\r\n"
        );
        let binary =
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc0\0\x02\x09\x9c\x40\x01\xbb";
        assert_eq!(ProxyVersion::V2.header(source, destination), binary);
        assert_eq!(ProxyVersion::V1.local_header(), b"PROXY UNKNOWN\r\n");
        let local = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
        assert_eq!(ProxyVersion::V2.local_header(), local);
        for version in [ProxyVersion::V1, ProxyVersion::V2] {
            let bytes = version.local_header();
            let whole = ProxyHeader::Whole {
                length: bytes.len(),
                proxied: None,
            };
            assert_eq!(proxy_header(&bytes), whole);
        }
    }
}
