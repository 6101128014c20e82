//! Upstreams: targets, protocol, TLS, timeouts and connection pool.

mod key_pin;

pub use key_pin::KeyPin;

use crate::address::TargetAddress;
use crate::health::{HealthCheck, OutlierDetection};
use crate::place::{Place, Setting};
use proxy_framing::ProxyVersion;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A group of targets that answer the same requests.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Name, unique among upstreams.
    pub name: String,
    /// Place of the block.
    pub place: Place,
    /// Targets, at least one, with distinct addresses.
    pub targets: Vec<Target>,
    /// Load-balancing policy.
    pub load_balancing: Setting<LoadBalancing>,
    /// Time in which the share of a recovered target grows to its full value; `None` restores it at
    /// once.
    pub slow_start: Option<Setting<Duration>>,
    /// Cookie of the `sticky` policy.
    pub sticky: Sticky,
    /// Active health check; `None` treats every target as healthy.
    pub health_check: Option<HealthCheck>,
    /// Outlier detection; `None` if disabled.
    pub outlier_detection: Option<OutlierDetection>,
    /// TLS to the targets; `None` for plaintext on any port.
    pub tls: Option<UpstreamTls>,
    /// Protocol of connections to the targets.
    pub protocol: Setting<UpstreamProtocol>,
    /// Version of the PROXY protocol header at the beginning of connections; `None` sends none.
    pub send_proxy: Option<Setting<ProxyVersion>>,
    /// Timeouts of targets.
    pub timeouts: UpstreamTimeouts,
    /// Limits of the connection pool.
    pub connection_pool: ConnectionPool,
}

/// A target of an upstream.
#[derive(Clone, Debug)]
pub struct Target {
    /// Place of the target's node.
    pub place: Place,
    /// Host and port.
    pub address: Setting<TargetAddress>,
    /// Share of the requests; 0 receives no new requests.
    pub weight: Setting<u32>,
    /// True if it takes requests only while no other target can.
    pub backup: Setting<bool>,
}

/// The load-balancing policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadBalancing {
    /// The targets in turn.
    RoundRobin,
    /// Targets in proportion to their weights, evenly spread over time.
    Weighted,
    /// The target with the fewest active requests relative to its weight.
    LeastConnections,
    /// The target is determined by the client's address.
    IpHash,
    /// Of two random targets, the less busy for its weight.
    RandomTwo,
    /// Of two random targets, the one expected to respond sooner.
    PeakEwma,
    /// The target that the client's cookie names, else by weight.
    Sticky,
}

/// Cookie of the `sticky` policy.
#[derive(Clone, Debug)]
pub struct Sticky {
    /// Name of the cookie.
    pub cookie: Setting<String>,
    /// Key of the cookies, equal on all proxies of an upstream; `None` for a random one of this
    /// process.
    pub secret: Option<Setting<StickySecret>>,
}

/// A secret, which `Debug` leaves out.
#[derive(Clone, PartialEq, Eq)]
pub struct StickySecret(pub String);

/// The protocol of connections to targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    H1,
    /// HTTP/2, by ALPN over TLS, by prior knowledge without TLS.
    H2,
}

/// TLS to targets.
#[derive(Clone, Debug)]
pub struct UpstreamTls {
    /// Place of the block.
    pub place: Place,
    /// Server name to send and to verify; `None` takes the target's host.
    pub sni: Option<Setting<String>>,
    /// Path of the trusted certificate authorities, PEM; `None` trusts the system's.
    pub ca_file: Option<Setting<PathBuf>>,
    /// Path of the proxy's client certificate chain, PEM; present together with the key.
    pub cert_file: Option<Setting<PathBuf>>,
    /// Path of the private key, PEM.
    pub key_file: Option<Setting<PathBuf>>,
    /// True if chain, names and validity of certificates are verified; if not, `pins` has at least
    /// one.
    pub verify: Setting<bool>,
    /// Public keys of the targets' certificates; an empty list admits all.
    pub pins: Vec<Setting<KeyPin>>,
}

/// Timeouts of targets.
#[derive(Clone, Debug)]
pub struct UpstreamTimeouts {
    /// To connect, TLS included.
    pub connect: Setting<Duration>,
    /// From the request's last byte to the response's head.
    pub request: Setting<Duration>,
    /// Between two reads of a response, and between two writes of a request.
    pub read: Setting<Duration>,
    /// Without a byte in either direction on an upgraded connection.
    pub idle: Setting<Duration>,
}

/// Limits of the connection pool.
#[derive(Clone, Debug)]
pub struct ConnectionPool {
    /// Maximum number of connections to one target; `None` is unlimited.
    pub max_connections: Option<Setting<u32>>,
    /// Maximum number of idle connections to one target; `None` takes the global limit.
    pub max_idle: Option<Setting<u32>>,
    /// Maximum idle time of a pooled connection.
    pub idle_timeout: Setting<Duration>,
    /// Maximum age of a pooled connection; `None` is unlimited.
    pub max_lifetime: Option<Setting<Duration>>,
}

impl LoadBalancing {
    /// The word in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::Weighted => "weighted",
            Self::LeastConnections => "least_connections",
            Self::IpHash => "ip_hash",
            Self::RandomTwo => "random_two",
            Self::PeakEwma => "peak_ewma",
            Self::Sticky => "sticky",
        }
    }
}

impl fmt::Display for LoadBalancing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for StickySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StickySecret(..)")
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
