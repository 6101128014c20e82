//! Settings of the process.

use crate::place::Setting;
use std::time::Duration;

/// The `system` block.
#[derive(Clone, Debug)]
pub struct System {
    /// Number of worker threads; 0 starts one for each core.
    pub worker_threads: Setting<u32>,
    /// Time that requests in flight have to finish after the process is told to stop.
    pub graceful_shutdown_timeout: Setting<Duration>,
}
