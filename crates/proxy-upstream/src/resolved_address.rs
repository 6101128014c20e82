//! An address of a target that is written by name.

use std::net::SocketAddr;

/// One address of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResolvedAddress {
    /// Address and port.
    pub address: SocketAddr,
    /// The weight in an SRV record; `None` takes the target's.
    pub weight: Option<u32>,
}
