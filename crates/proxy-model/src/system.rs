//! The process as a whole.

use crate::place::Setting;
use std::time::Duration;

/// The `system` block.
#[derive(Clone, Debug)]
pub struct System {
    /// Threads that serve requests; 0 is one for each core.
    pub worker_threads: Setting<u32>,
    /// How long requests in flight may take to end once the process was told to stop.
    pub graceful_shutdown_timeout: Setting<Duration>,
}
