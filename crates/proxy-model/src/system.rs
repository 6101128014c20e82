//! Settings of the process.

use crate::place::Setting;
use std::net::SocketAddr;
use std::time::Duration;

/// The `system` block.
#[derive(Clone, Debug)]
pub struct System {
    /// Number of worker threads; 0 starts one for each core.
    pub worker_threads: Setting<u32>,
    /// Grace period for requests in flight at shutdown.
    pub graceful_shutdown_timeout: Setting<Duration>,
    /// Resolution of targets by name.
    pub dns: Dns,
}

/// Resolution of targets that are written by name.
#[derive(Clone, Debug)]
pub struct Dns {
    /// Name servers; empty for the system's.
    pub name_servers: Vec<Setting<SocketAddr>>,
    /// Maximum time of a look-up.
    pub timeout: Setting<Duration>,
    /// Minimum time between two look-ups of a name.
    pub min_ttl: Setting<Duration>,
    /// Maximum time between two look-ups of a name.
    pub max_ttl: Setting<Duration>,
}
