//! The `system` block.

use super::number::{Integer, Time};
use super::spec::Given;
use super::table::{integer, settings, time_from};
use std::time::Duration;

settings! {
    /// Threads that serve requests. 0 starts one for each core the process may use.
    WORKER_THREADS: Integer<u32>, Given<u32> = integer("system.worker-threads", 0, 1_024, "threads")
        .or(0)
        .also(&[""])
        .enforced("proxy-server", "every_worker_gives_every_target_its_turn");
    /// How long requests in flight may take to end once the process was told to stop, and streams whose
    /// route or target a reload has removed. 0 cuts them at once.
    GRACEFUL_SHUTDOWN_TIMEOUT: Time, Given<Duration> = time_from(
        "system.graceful-shutdown-timeout-secs",
        Duration::ZERO,
        Duration::from_hours(24),
    )
    .or(Duration::from_secs(30))
    .enforced("proxy-server", "requests_are_cut_when_the_shutdown_timeout_is_over");
}
