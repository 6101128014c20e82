//! PROXY protocol headers to be sent.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

pub(super) const V2_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

const V2_LOCAL: u8 = 0x20;
const V2_PROXY: u8 = 0x21;
const V2_TCP_OVER_IPV4: u8 = 0x11;
const V2_TCP_OVER_IPV6: u8 = 0x21;

/// A version of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyVersion {
    /// A line of text.
    V1,
    /// Binary, with addresses as bytes.
    V2,
}

impl ProxyVersion {
    /// The header of a connection on behalf of the client at `source`, which connected to `destination`. Addresses of two
    /// families are both written as IPv6.
    ///
    /// ```
    /// use proxy_framing::ProxyVersion;
    ///
    /// let (source, destination) = ("192.0.2.1:40000".parse()?, "192.0.2.9:443".parse()?);
    /// assert_eq!(
    ///     ProxyVersion::V1.header(source, destination),
    ///     b"PROXY TCP4 192.0.2.1 192.0.2.9 40000 443\r\n"
    /// );
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[must_use]
    pub fn header(self, source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
        let ips = (source.ip().to_canonical(), destination.ip().to_canonical());
        let (from, to) = match ips {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => ips,
            (from, to) => (mapped(from), mapped(to)),
        };
        let ports = [source.port(), destination.port()];
        match self {
            Self::V1 => {
                let family = if from.is_ipv4() { "TCP4" } else { "TCP6" };
                let [from_port, to_port] = ports;
                format!(
                    "PROXY {family} {} {} {from_port} {to_port}\r\n",
                    plain(from),
                    plain(to)
                )
                .into_bytes()
            }
            Self::V2 => {
                let family = if from.is_ipv4() {
                    V2_TCP_OVER_IPV4
                } else {
                    V2_TCP_OVER_IPV6
                };
                let mut rest = Vec::with_capacity(36);
                for ip in [from, to] {
                    match ip {
                        IpAddr::V4(ip) => rest.extend(ip.octets()),
                        IpAddr::V6(ip) => rest.extend(ip.octets()),
                    }
                }
                rest.extend(ports.into_iter().flat_map(u16::to_be_bytes));
                binary(V2_PROXY, family, &rest)
            }
        }
    }

    /// The header of a connection of the proxy itself: the receiver takes the connection's own
    /// addresses.
    #[must_use]
    pub fn local_header(self) -> Vec<u8> {
        match self {
            Self::V1 => b"PROXY UNKNOWN\r\n".to_vec(),
            Self::V2 => binary(V2_LOCAL, 0, &[]),
        }
    }
}

fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).unwrap_or_default();
    [
        V2_SIGNATURE,
        &[command, family],
        &length.to_be_bytes(),
        rest,
    ]
    .concat()
}

fn mapped(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().into(),
        IpAddr::V6(_) => ip,
    }
}

/// The address in hexadecimal groups alone: not every receiver reads `::ffff:192.0.2.1`.
fn plain(ip: IpAddr) -> String {
    match ip {
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() => {
            let groups = ip.segments().map(|group| format!("{group:x}"));
            groups.join(":")
        }
        IpAddr::V4(_) | IpAddr::V6(_) => ip.to_string(),
    }
}

impl fmt::Display for ProxyVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        })
    }
}
