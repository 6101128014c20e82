//! The client address of a request that passed through proxies.

use std::net::IpAddr;

/// The client of a request received from `peer`: of the hops in the lines of `X-Forwarded-For`, the
/// right-most one that `is_trusted` rejects, or the left-most one before a hop that is not an
/// address. Empty elements of the list are skipped. [RFC 9110 §5.6.1] An IPv4-mapped IPv6 address
/// is returned as IPv4.
pub fn client_of<'h>(
    peer: IpAddr,
    lines: impl DoubleEndedIterator<Item = &'h [u8]>,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> IpAddr {
    let mut client = peer;
    let hops = lines
        .rev()
        .flat_map(|line| line.rsplit(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|hop| !hop.is_empty());
    for hop in hops {
        let Some(ip) = hop_address(hop) else {
            break;
        };
        client = ip;
        if !is_trusted(ip) {
            break;
        }
    }
    client
}

/// Parses an address with or without port, IPv6 with or without brackets.
fn hop_address(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop).ok()?;
    let ip = hop.parse::<IpAddr>().ok();
    let ip = ip.or_else(|| {
        let host = match hop.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?.0,
            None => hop.rsplit_once(':')?.0,
        };
        host.parse().ok()
    });
    ip.map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(lines: &[&str]) -> String {
        let trusted = |ip: IpAddr| ip.to_string().starts_with("10.");
        let lines = lines.iter().map(|line| line.as_bytes());
        client_of("10.0.0.7".parse().unwrap(), lines, trusted).to_string()
    }

    #[test]
    fn the_right_most_untrusted_hop_is_the_client() {
        for (lines, expected) in [
            (&["1.1.1.1, 2.2.2.2, 10.0.0.9"][..], "2.2.2.2"),
            (&["1.1.1.1", "2.2.2.2", "10.0.0.9"], "2.2.2.2"),
            (&["10.0.0.1, 10.0.0.2"], "10.0.0.1"),
            (&["1.1.1.1, junk, 10.0.0.2"], "10.0.0.2"),
            (&["1.1.1.1, \u{fc}, 10.0.0.2"], "10.0.0.2"),
            (&["[2001:db8::1]:443"], "2001:db8::1"),
            (&["::ffff:1.2.3.4"], "1.2.3.4"),
            (&["1.2.3.4:5678"], "1.2.3.4"),
            (&[""], "10.0.0.7"),
            (&["1.2.3.4,"], "1.2.3.4"),
            (&["1.2.3.4, \t,"], "1.2.3.4"),
            (&["1.2.3.4 ,,10.0.0.9,"], "1.2.3.4"),
            (&["1.2.3.4", "", " , "], "1.2.3.4"),
            (&["1.1.1.1, junk, , 10.0.0.2"], "10.0.0.2"),
            (&[", ,"], "10.0.0.7"),
            (&[], "10.0.0.7"),
        ] {
            assert_eq!(client(lines), expected, "{lines:?}");
        }
    }
}
