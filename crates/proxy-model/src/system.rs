//! Settings of the process.

use crate::place::Setting;
use std::net::SocketAddr;
use std::time::Duration;

/// The `system` block.
#[derive(Clone, Debug)]
pub struct System {
    /// Number of worker threads; 0 starts one for each core.
    pub worker_threads: Setting<u32>,
    /// Time that requests in flight have to finish after the process is told to stop.
    pub graceful_shutdown_timeout: Setting<Duration>,
    /// Resolution of targets by name.
    pub dns: Dns,
}

/// Resolution of targets that are written by name.
#[derive(Clone, Debug)]
pub struct Dns {
    /// Name servers; those of the system if there are none.
    pub name_servers: Vec<Setting<SocketAddr>>,
    /// Maximum time of a look-up.
    pub timeout: Setting<Duration>,
    /// Least time from one look-up of a name to the next.
    pub min_ttl: Setting<Duration>,
    /// Greatest time from one look-up of a name to the next.
    pub max_ttl: Setting<Duration>,
}
