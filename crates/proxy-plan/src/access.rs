//! The networks of clients that may send requests, compiled for look-ups.

use ipnet::{IpNet, Ipv4Net};
use proxy_model::{Access, NetworkFile, Setting};
use std::net::IpAddr;

/// Networks of clients that may send requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPlan {
    /// `None` admits every address that `deny` does not contain.
    allow: Option<NetworkSet>,
    deny: NetworkSet,
}

/// Sorted, disjoint ranges of addresses; look-up by binary search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NetworkSet {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

impl AccessPlan {
    /// `None` if every client is admitted.
    pub(crate) fn compile(access: &Access) -> Option<Box<Self>> {
        let Access {
            allow,
            allow_files,
            deny,
            deny_files,
        } = access;
        let has_list = !allow.is_empty() || !allow_files.is_empty();
        (!access.is_open()).then(|| {
            Box::new(Self {
                allow: has_list.then(|| NetworkSet::new(allow, allow_files)),
                deny: NetworkSet::new(deny, deny_files),
            })
        })
    }

    /// Returns true if a client at `ip` may send requests.
    #[must_use]
    pub fn admits(&self, ip: IpAddr) -> bool {
        let Self { allow, deny } = self;
        let ip = ip.to_canonical();
        allow.as_ref().is_none_or(|allow| allow.contains(ip)) && !deny.contains(ip)
    }

    /// Addresses in the allowed networks. `deny` may refuse some of them.
    pub(crate) fn samples(&self) -> impl Iterator<Item = IpAddr> {
        let sets = self.allow.iter();
        sets.flat_map(|set| {
            let v4 = set.v4.iter().flat_map(|(first, last)| [*first, *last]);
            let v6 = set.v6.iter().flat_map(|(first, last)| [*first, *last]);
            v4.map(|ip| IpAddr::from(ip.to_be_bytes()))
                .chain(v6.map(|ip| IpAddr::from(ip.to_be_bytes())))
        })
    }
}

impl NetworkSet {
    fn new(written: &[Setting<IpNet>], files: &[Setting<NetworkFile>]) -> Self {
        let written = written.iter().map(|network| network.value);
        let files = files.iter().flat_map(|file| file.networks.iter().copied());
        let mut set = Self::default();
        for network in written.chain(files) {
            match canonical(network) {
                IpNet::V4(net) => set.v4.push((net.network().into(), net.broadcast().into())),
                IpNet::V6(net) => set.v6.push((net.network().into(), net.broadcast().into())),
            }
        }
        set.v4 = merged(set.v4);
        set.v6 = merged(set.v6);
        set
    }

    fn contains(&self, ip: IpAddr) -> bool {
        match ip {
            IpAddr::V4(ip) => is_in(&self.v4, ip.into()),
            IpAddr::V6(ip) => is_in(&self.v6, ip.into()),
        }
    }
}

/// The IPv4 network that a network of mapped addresses stands for: clients are compared in that
/// form. [RFC 4291 §2.5.5.2]
fn canonical(network: IpNet) -> IpNet {
    let IpNet::V6(net) = network else {
        return network;
    };
    let mapped = net.network().to_ipv4_mapped();
    let length = net.prefix_len().checked_sub(96);
    let v4 = mapped
        .zip(length)
        .and_then(|(ip, length)| Ipv4Net::new(ip, length).ok());
    v4.map_or(network, IpNet::V4)
}

/// Sorted ranges without overlaps.
fn merged<T: Copy + Ord>(mut ranges: Vec<(T, T)>) -> Vec<(T, T)> {
    ranges.sort_unstable();
    let mut merged: Vec<(T, T)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if first <= *end => *end = last.max(*end),
            Some(_) | None => merged.push((first, last)),
        }
    }
    merged
}

fn is_in<T: Copy + Ord>(ranges: &[(T, T)], ip: T) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= ip);
    let range = after.checked_sub(1).and_then(|at| ranges.get(at));
    range.is_some_and(|(_, last)| ip <= *last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_model::Place;

    fn networks(list: &[&str]) -> Vec<Setting<IpNet>> {
        let networks = list.iter().map(|text| text.parse().unwrap());
        networks
            .map(|network| Setting::at(network, Place::default()))
            .collect()
    }

    fn plan(allow: &[&str], deny: &[&str]) -> AccessPlan {
        let access = Access {
            allow: networks(allow),
            deny: networks(deny),
            ..Access::default()
        };
        *AccessPlan::compile(&access).unwrap()
    }

    #[test]
    fn a_refusal_counts_more_than_a_permission() {
        let plan = plan(&["10.0.0.0/8", "2001:db8::/32"], &["10.1.0.0/16"]);
        for (ip, admitted) in [
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("10.1.2.3", false),
            ("9.255.255.255", false),
            ("11.0.0.0", false),
            ("2001:db8:ffff::1", true),
            ("2001:db9::", false),
            ("::ffff:10.0.0.1", true),
            ("::ffff:10.1.0.1", false),
        ] {
            assert_eq!(plan.admits(ip.parse().unwrap()), admitted, "{ip}");
        }
    }

    #[test]
    fn without_allow_all_addresses_outside_deny_are_admitted() {
        let plan = plan(&[], &["192.0.2.0/24", "::ffff:198.51.100.0/120"]);
        for (ip, admitted) in [
            ("192.0.2.9", false),
            ("198.51.100.1", false),
            ("192.0.3.0", true),
            ("::1", true),
        ] {
            assert_eq!(plan.admits(ip.parse().unwrap()), admitted, "{ip}");
        }
    }

    #[test]
    fn networks_within_each_other_are_one() {
        let plan = plan(
            &["10.0.0.0/8", "10.1.0.0/16", "10.0.0.0/9", "12.0.0.0/8"],
            &[],
        );
        assert!(plan.admits("10.200.0.1".parse().unwrap()));
        assert!(!plan.admits("11.0.0.1".parse().unwrap()));
        assert!(plan.admits("12.0.0.1".parse().unwrap()));
    }
}
