//! The addresses that the upstreams of a bundle may have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Addresses that no upstream of a bundle may have, however they are found: written, or by DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerRule {
    /// True if loopback addresses are allowed.
    pub loopback: bool,
    /// Address of the admin interface; `None` without one.
    pub admin: Option<SocketAddr>,
}

/// The reason against an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerFault {
    /// An address of the node itself.
    #[error("it is a loopback address")]
    Loopback,
    /// An address that is valid on one link only, where clouds have their metadata services.
    #[error("it is a link-local address")]
    LinkLocal,
    /// The address of a cloud's metadata service.
    #[error("it is the address of a cloud's metadata service")]
    Metadata,
    /// The node's admin interface.
    #[error("it is the address of the admin interface")]
    Admin,
}

/// Metadata services outside of the link-local ranges.
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

impl PeerRule {
    /// Checks an address. `is_own` returns true for an address of this machine; it is called only
    /// for the port of the admin interface.
    ///
    /// # Errors
    ///
    /// No upstream of a bundle may have the address.
    pub fn check(
        &self,
        peer: SocketAddr,
        is_own: impl FnOnce(IpAddr) -> bool,
    ) -> Result<(), PeerFault> {
        let ip = embedded(peer.ip());
        let is_loopback = leads_to_loopback(ip);
        if let Some(admin) = self.admin
            && admin.port() == peer.port()
            && (is_loopback || ip == embedded(admin.ip()) || is_own(ip))
        {
            return Err(PeerFault::Admin);
        }
        if is_loopback && !self.loopback {
            return Err(PeerFault::Loopback);
        }
        if is_link_local(ip) {
            return Err(PeerFault::LinkLocal);
        }
        if METADATA.contains(&ip) {
            return Err(PeerFault::Metadata);
        }
        Ok(())
    }
}

/// The IPv4 address in a mapped, compatible or translated IPv6 address; any other address
/// unchanged.
fn embedded(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = ip else {
        return ip;
    };
    match six.segments() {
        [0, 0, 0, 0, 0, 0, high, low] if (high, low) > (0, 1) => four(high, low),
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            four(high, low)
        }
        _ => ip,
    }
}

fn four(high: u16, low: u16) -> IpAddr {
    let bits = (u32::from(high) << 16) | u32::from(low);
    Ipv4Addr::from_bits(bits).into()
}

/// A connection to an unspecified address reaches loopback, too.
fn leads_to_loopback(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(four) => four.is_loopback() || four.octets().first() == Some(&0),
        IpAddr::V6(six) => six.is_loopback() || six.is_unspecified(),
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: PeerRule = PeerRule {
        loopback: false,
        admin: None,
    };

    fn check(rule: PeerRule, address: &str) -> Result<(), PeerFault> {
        rule.check(address.parse().unwrap(), |ip| {
            ip == IpAddr::from([10, 0, 0, 5])
        })
    }

    #[test]
    fn loopback_is_known_by_each_of_its_names() {
        for address in [
            "127.0.0.1:80",
            "127.9.9.9:80",
            "0.0.0.0:80",
            "0.1.2.3:80",
            "[::1]:80",
            "[::]:80",
            "[::ffff:127.0.0.1]:80",
            "[::ffff:0.0.0.0]:80",
            "[::127.0.0.1]:80",
            "[64:ff9b::127.0.0.1]:80",
        ] {
            assert_eq!(check(RULE, address), Err(PeerFault::Loopback), "{address}");
            let allowed = PeerRule {
                loopback: true,
                ..RULE
            };
            assert_eq!(check(allowed, address), Ok(()), "{address}");
        }
    }

    #[test]
    fn metadata_services_are_never_reached() {
        let allowed = PeerRule {
            loopback: true,
            ..RULE
        };
        for (address, fault) in [
            ("169.254.169.254:80", PeerFault::LinkLocal),
            ("[::ffff:169.254.169.254]:80", PeerFault::LinkLocal),
            ("[fe80::1]:80", PeerFault::LinkLocal),
            ("[fd00:ec2::254]:80", PeerFault::Metadata),
            ("100.100.100.200:80", PeerFault::Metadata),
            ("168.63.129.16:80", PeerFault::Metadata),
        ] {
            assert_eq!(check(allowed, address), Err(fault), "{address}");
        }
        for address in ["10.0.0.1:80", "[2001:db8::1]:443", "192.168.1.1:8080"] {
            assert_eq!(check(RULE, address), Ok(()), "{address}");
        }
    }

    #[test]
    fn the_admin_interface_cannot_be_a_target_by_any_address() {
        for admin in ["127.0.0.1:9090", "0.0.0.0:9090", "10.0.0.5:9090"] {
            let rule = PeerRule {
                loopback: true,
                admin: Some(admin.parse().unwrap()),
            };
            for peer in ["127.0.0.1:9090", "[::]:9090", "10.0.0.5:9090"] {
                assert_eq!(check(rule, peer), Err(PeerFault::Admin), "{admin} {peer}");
            }
            for peer in ["127.0.0.1:9091", "10.0.0.6:9090"] {
                assert_eq!(check(rule, peer), Ok(()), "{admin} {peer}");
            }
        }
    }
}
