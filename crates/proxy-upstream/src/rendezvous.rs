//! Rendezvous hashing: a client keeps its target as long as the target exists, even if other
//! targets change.

use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::net::IpAddr;

/// The hash of a client's address: the whole of an IPv4 address, the /64 network of an IPv6
/// address, because hosts change the lower half. Every proxy computes the same hash for the same
/// client.
#[must_use]
pub fn client_hash(address: IpAddr) -> u64 {
    let mut hasher = SipHasher13::new();
    match address.to_canonical() {
        IpAddr::V4(address) => hasher.write(&address.octets()),
        IpAddr::V6(address) => {
            let [network @ .., _, _, _, _, _, _, _, _] = address.octets();
            hasher.write(&network);
        }
    }
    hasher.finish()
}

/// The hash of a target's address, as it is written in the configuration.
#[must_use]
pub fn target_hash(address: &str) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(address.as_bytes());
    hasher.finish()
}

/// The score of `target` for `client`; the target with the highest score gets it. Of targets with the
/// weights 1 and 2, the latter has the higher score for two thirds of all clients.
/// [Weighted rendezvous hashing: Thaler and Ravishankar 1998, Schindelhauer and Schomaker 2005]
#[inline]
#[expect(clippy::cast_precision_loss, reason = "53 bits of a hash are many")]
pub(crate) fn score(client: u64, target: u64, weight: u32) -> f64 {
    let mixed = mix(client ^ mix(target));
    // Uniform between 0 and 1, both excluded.
    let even = ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    f64::from(weight) / -even.ln()
}

/// Every bit of the result depends on every bit of `bits`. [The finalizer of `SplitMix64`]
#[inline]
pub(crate) const fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_one_ipv6_network_are_one() {
        let hash = |address: &str| client_hash(address.parse().unwrap());

        assert_eq!(hash("2001:db8::1"), hash("2001:db8::ffff"));
        assert_ne!(hash("2001:db8::1"), hash("2001:db8:0:1::1"));
        assert_eq!(hash("::ffff:192.0.2.1"), hash("192.0.2.1"));
        assert_ne!(hash("192.0.2.1"), hash("192.0.2.2"));
    }

    #[test]
    fn every_proxy_and_version_has_the_same_hashes() {
        let hashes = (
            client_hash("192.0.2.1".parse().unwrap()),
            target_hash("10.0.0.1:80"),
        );
        assert_eq!(
            hashes,
            (1_314_750_461_445_413_874, 4_630_397_733_479_927_016)
        );
    }
}
