//! The `system` block.

use super::number::{Integer, Time};
use super::spec::Given;
use super::table::{integer, settings, time_from};
use std::time::Duration;

settings! {
    /// Number of worker threads. 0 starts one for each core available to the process.
    WORKER_THREADS: Integer<u32>, Given<u32> = integer("system.worker-threads", 0, 1_024, "threads")
        .or(0)
        .also(&[""])
        .enforced("proxy-server", "every_worker_gives_every_target_its_turn");
    /// Time that requests in flight have to finish after the process is told to stop, and streams
    /// after a reload removed their route or target. 0 ends them at once.
    GRACEFUL_SHUTDOWN_TIMEOUT: Time, Given<Duration> = time_from(
        "system.graceful-shutdown-timeout-secs",
        Duration::ZERO,
        Duration::from_hours(24),
    )
    .or(Duration::from_secs(30))
    .enforced("proxy-server", "requests_are_cut_when_the_shutdown_timeout_is_over");
}
