//! Settings of look-ups.

use std::net::SocketAddr;
use std::time::Duration;

/// Settings of look-ups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResolverSettings {
    /// Name servers; empty for the ones of `/etc/resolv.conf`.
    pub name_servers: Vec<SocketAddr>,
    /// Maximum time of a look-up.
    pub timeout: Duration,
    /// Minimum time between two look-ups of a name.
    pub min_ttl: Duration,
    /// Maximum time between two look-ups of a name; a greater `min_ttl` has precedence.
    pub max_ttl: Duration,
}

impl ResolverSettings {
    /// Time until the next look-up after an answer with this TTL.
    #[must_use]
    pub fn rest(&self, ttl: Duration) -> Duration {
        ttl.min(self.max_ttl).max(self.min_ttl)
    }
}
