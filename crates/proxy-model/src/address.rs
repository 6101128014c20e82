//! Addresses: where the proxy listens, and where it connects to.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Where a listener binds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BindAddress {
    /// An IP address and a port, as `0.0.0.0:8080` or `[::]:80`. Port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A Unix socket, written `unix:/path`.
    Unix(PathBuf),
}

/// Where a target is: a host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetAddress {
    /// The host.
    pub host: Host,
    /// The port, 1 to 65535.
    pub port: u16,
}

/// A host, by number or by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// An IP address; nothing to resolve.
    Ip(IpAddr),
    /// A name to resolve, in lower case, without a trailing dot.
    Name(Box<str>),
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for TargetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        match host {
            Host::Ip(ip) => SocketAddr::new(*ip, *port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{port}"),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}
