//! Keys of rate-limit tables: clients, header values, paths, routes.

use siphasher::sip::SipHasher13;
use std::hash::{BuildHasher, Hasher};
use std::net::{IpAddr, Ipv6Addr};

/// A client: an IPv4 address, or the /64 network of an IPv6 address, because one subscriber has at
/// least a whole /64. An IPv4-mapped IPv6 address is the IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClientKey {
    /// Bits of the IPv4 address.
    V4(u32),
    /// The upper 64 bits of the address.
    V6(u64),
}

/// The key of a bucket in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateKey<'a> {
    /// One bucket per client.
    Client(ClientKey),
    /// The value of a header field; `None` if the request has no such field.
    Header(Option<&'a [u8]>),
    /// One bucket per path, in its normal form.
    Path(&'a str),
    /// The index of the route.
    Route(u32),
}

/// A seed for hashes of keys that clients choose: random, so that clients cannot choose keys that
/// collide.
#[derive(Clone, Copy, Debug)]
pub struct KeySeed {
    /// Random bits.
    pub low: u64,
    /// Random bits.
    pub high: u64,
}

/// The key of the client at `address`.
impl From<IpAddr> for ClientKey {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6(upper_half(address)),
        }
    }
}

impl ClientKey {
    /// The key in bytes of one length, equal for equal keys only.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 9] {
        let (kind, address) = match self {
            Self::V4(address) => (4, u64::from(address)),
            Self::V6(network) => (6, network),
        };
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&address.to_be_bytes());
        bytes
    }
}

impl BuildHasher for KeySeed {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> Self::Hasher {
        SipHasher13::new_with_keys(self.low, self.high)
    }
}

impl KeySeed {
    /// The hash of `key`: equal for equal keys, unpredictable without the seed.
    #[must_use]
    pub(crate) fn hash(&self, key: &RateKey<'_>) -> u64 {
        let mut hasher = self.build_hasher();
        match key {
            RateKey::Client(ClientKey::V4(address)) => {
                hasher.write(&(u64::from(*address) << 8 | 1).to_le_bytes());
            }
            RateKey::Client(ClientKey::V6(network)) => {
                hasher.write(&network.to_le_bytes());
                hasher.write_u8(2);
            }
            RateKey::Header(None) => hasher.write_u8(3),
            RateKey::Header(Some(value)) => {
                hasher.write(value);
                hasher.write_u8(4);
            }
            RateKey::Path(path) => {
                hasher.write(path.as_bytes());
                hasher.write_u8(5);
            }
            RateKey::Route(position) => {
                hasher.write(&position.to_le_bytes());
                hasher.write_u8(6);
            }
        }
        hasher.finish()
    }
}

const fn upper_half(address: Ipv6Addr) -> u64 {
    (address.to_bits() >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn key(address: &str) -> ClientKey {
        ClientKey::from(address.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn an_ipv6_client_is_its_network_and_a_mapped_one_its_ipv4_address() {
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_eq!(key("::ffff:192.0.2.7"), key("192.0.2.7"));
        assert_ne!(key("192.0.2.7"), key("192.0.2.8"));
        assert_ne!(key("0.0.0.0").to_bytes(), key("::").to_bytes());
    }

    #[test]
    fn keys_of_different_kinds_have_different_hashes() {
        let seed = KeySeed { low: 1, high: 2 };
        let keys = [
            RateKey::Client(key("0.0.0.0")),
            RateKey::Client(key("::")),
            RateKey::Header(None),
            RateKey::Header(Some(b"")),
            RateKey::Header(Some(b"/")),
            RateKey::Path(""),
            RateKey::Path("/"),
            RateKey::Route(0),
        ];
        let hashes: HashSet<u64> = keys.iter().map(|key| seed.hash(key)).collect();

        assert_eq!(hashes.len(), keys.len());
        let other = KeySeed { low: 1, high: 3 };
        assert!(keys.iter().all(|key| !hashes.contains(&other.hash(key))));
    }
}
