//! The targets of an upstream by address.

use crate::resolution::{NameResolution, Resolution};
use proxy_model::{Host, Target, TargetAddress, Upstream};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

/// An address of an upstream.
#[derive(Clone, Debug)]
pub(crate) struct ExpandedTarget<'m> {
    /// Index of the configured target.
    pub(crate) position: usize,
    pub(crate) target: &'m Target,
    pub(crate) place: ExpandedPlace,
    pub(crate) weight: u32,
}

/// Address of a target.
#[derive(Clone, Debug)]
pub(crate) enum ExpandedPlace {
    At(SocketAddr),
    /// A name that was not resolved.
    Unknown,
    /// A name that never had an address: the failure, and its time.
    Failed(Arc<str>, SystemTime),
}

/// The targets of `upstream`, in the order of the configuration, with one target per address of a
/// name.
pub(crate) fn expand<'m>(
    upstream: &'m Upstream,
    resolution: &Resolution,
) -> Vec<ExpandedTarget<'m>> {
    let mut expanded = Vec::with_capacity(upstream.targets.len());
    for (position, target) in upstream.targets.iter().enumerate() {
        let mut push = |place, weight: Option<u32>| {
            expanded.push(ExpandedTarget {
                position,
                target,
                place,
                // A configured weight of 0 excludes the target, regardless of DNS records.
                weight: match *target.weight {
                    0 => 0,
                    written => weight.unwrap_or(written),
                },
            });
        };
        let address = &target.address.value;
        match (&address.host, resolution.get(address)) {
            (Host::Ip(ip), _) => {
                push(ExpandedPlace::At(SocketAddr::new(*ip, address.port)), None);
            }
            (_, Some(NameResolution::Addresses(addresses))) => {
                for one in addresses.iter() {
                    push(ExpandedPlace::At(one.address), one.weight);
                }
            }
            (_, Some(NameResolution::Failed { error, since })) => {
                push(ExpandedPlace::Failed(Arc::clone(error), *since), None);
            }
            (_, None) => push(ExpandedPlace::Unknown, None),
        }
    }
    expanded
}

impl ExpandedPlace {
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::At(address) => Some(*address),
            Self::Unknown | Self::Failed(..) => None,
        }
    }
}

impl ExpandedTarget<'_> {
    /// The target's address as text; its name if it has no address.
    pub(crate) fn label(&self) -> String {
        match self.place.address() {
            Some(address) => address.to_string(),
            None => self.target.address.to_string(),
        }
    }

    /// The `Host` of requests without one.
    pub(crate) fn authority(&self) -> String {
        let written: &TargetAddress = &self.target.address;
        match (&written.host, self.place.address()) {
            (Host::Service(_), Some(address)) => {
                format!("{}:{}", written.certificate_host(), address.port())
            }
            (Host::Service(_), None) => written.certificate_host(),
            (Host::Ip(_) | Host::Name(_), _) => written.to_string(),
        }
    }

    /// The DNS name that resolves to this address.
    pub(crate) fn name(&self) -> Option<String> {
        let written = &self.target.address;
        written.is_name().then(|| written.to_string())
    }
}
