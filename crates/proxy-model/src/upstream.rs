//! The targets behind a name, and how they are reached.

use crate::address::TargetAddress;
use crate::health::HealthCheck;
use crate::place::{Place, Setting};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A group of targets that can answer the same requests.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Its name, unique among upstreams.
    pub name: String,
    /// Its block.
    pub place: Place,
    /// The targets, at least one, no address twice.
    pub targets: Vec<Target>,
    /// How the next target is chosen.
    pub load_balancing: Setting<LoadBalancing>,
    /// How targets are asked whether they are well; none takes them to be.
    pub health_check: Option<HealthCheck>,
    /// TLS towards the targets; none speaks plaintext whatever the port.
    pub tls: Option<UpstreamTls>,
    /// What targets speak.
    pub protocol: Setting<UpstreamProtocol>,
    /// How long targets may take.
    pub timeouts: UpstreamTimeouts,
    /// Connections kept and allowed.
    pub connection_pool: ConnectionPool,
}

/// One place where an upstream's requests can be sent.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it is written.
    pub place: Place,
    /// Where it is.
    pub address: Setting<TargetAddress>,
    /// Its share; 0 takes no new requests.
    pub weight: Setting<u32>,
}

/// How the next target is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadBalancing {
    /// One after the other.
    RoundRobin,
}

/// What targets speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    H1,
    /// HTTP/2, by ALPN over TLS, by prior knowledge without.
    H2,
}

/// TLS towards targets.
#[derive(Clone, Debug)]
pub struct UpstreamTls {
    /// Its block.
    pub place: Place,
    /// Server name asked for and verified; none takes the target's host.
    pub sni: Option<Setting<String>>,
    /// Authorities trusted, PEM; none trusts the system's.
    pub ca_file: Option<Setting<PathBuf>>,
    /// Our own certificate chain, PEM; present together with the key.
    pub cert_file: Option<Setting<PathBuf>>,
    /// Our own private key, PEM.
    pub key_file: Option<Setting<PathBuf>>,
}

/// How long targets may take.
#[derive(Clone, Debug)]
pub struct UpstreamTimeouts {
    /// To connect, TLS included.
    pub connect: Setting<Duration>,
    /// From the request's last byte to the response's head.
    pub request: Setting<Duration>,
    /// Between two reads of a response.
    pub read: Setting<Duration>,
    /// Without a byte either way once a connection is upgraded.
    pub idle: Setting<Duration>,
}

/// Connections kept and allowed.
#[derive(Clone, Debug)]
pub struct ConnectionPool {
    /// Most connections to one target; none has no limit of its own.
    pub max_connections: Option<Setting<u32>>,
    /// Most idle connections to one target; none takes the global limit.
    pub max_idle: Option<Setting<u32>>,
    /// How long an idle connection is kept.
    pub idle_timeout: Setting<Duration>,
}

impl LoadBalancing {
    /// The name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
        }
    }
}

impl fmt::Display for LoadBalancing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for UpstreamProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::H1 => "h1",
            Self::H2 => "h2",
        })
    }
}
