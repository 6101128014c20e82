//! Metrics of the process, its memory, its workers and its logs.

use crate::names::metric::{CounterOf, GaugeOf, Metric};
use crate::samples::process;

/// Age of a worker's last heartbeat.
pub const WORKER_HEARTBEAT_AGE_SECONDS: GaugeOf<1> = GaugeOf::new(
    "proxy_worker_heartbeat_age_seconds",
    &["worker"],
    "Whole seconds since the worker was last seen to run; 0 while all is well, 3 or more is not ready.",
);
/// Log lines written.
pub const LOG_LINES_WRITTEN_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_log_lines_written_total",
    &["log"],
    "Log lines that reached their destination.",
);
/// Log lines lost.
pub const LOG_LINES_LOST_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_log_lines_lost_total",
    &["log"],
    "Log lines given up because the destination was too slow or refused them.",
);
/// Failed writes to a log.
pub const LOG_WRITE_ERRORS_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_log_write_errors_total",
    &["log"],
    "Writes to a log, or attempts to open it again, that failed.",
);
/// Series refused for the limit on series.
pub const METRIC_SERIES_DROPPED_TOTAL: Metric = Metric::counter(
    "proxy_metric_series_dropped_total",
    &[],
    "Times a name got no series of its own because there were too many; see label overflow.",
    process::series_dropped,
);
/// Memory in use.
pub const MEMORY_USAGE_BYTES: Metric = Metric::gauge(
    "proxy_memory_usage_bytes",
    &[],
    "Resident memory; the same number as process_resident_memory_bytes.",
    process::resident_bytes,
);
/// Memory limit.
pub const MEMORY_LIMIT_BYTES: GaugeOf<0> = GaugeOf::new(
    "proxy_memory_limit_bytes",
    &[],
    "Memory that the configured limits allow.",
);
/// 1 if load is shed for lack of memory.
pub const MEMORY_SHEDDING: GaugeOf<0> = GaugeOf::new(
    "proxy_memory_shedding",
    &[],
    "1 while connections are refused because memory is short, else 0.",
);
/// Time since start.
pub const UPTIME_SECONDS: Metric = Metric::gauge(
    "proxy_uptime_seconds",
    &[],
    "Time since start.",
    process::uptime,
);
/// Version of the program.
pub const BUILD_INFO: Metric = Metric::gauge(
    "proxy_build_info",
    &["version", "commit"],
    "Always 1; the labels name the build.",
    process::build_info,
);
/// Processor time.
pub const PROCESS_CPU_SECONDS_TOTAL: Metric = Metric::counter(
    "process_cpu_seconds_total",
    &[],
    "Processor time spent, user and system.",
    process::cpu,
);
/// Resident memory.
pub const PROCESS_RESIDENT_MEMORY_BYTES: Metric = Metric::gauge(
    "process_resident_memory_bytes",
    &[],
    "Resident memory.",
    process::resident_bytes,
);
/// Open file descriptors.
pub const PROCESS_OPEN_FDS: Metric = Metric::gauge(
    "process_open_fds",
    &[],
    "Open file descriptors.",
    process::open_fds,
);
/// Time of start.
pub const PROCESS_START_TIME_SECONDS: Metric = Metric::gauge(
    "process_start_time_seconds",
    &[],
    "Unix time at which the process started.",
    process::start_time,
);
