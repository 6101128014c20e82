//! Global limits.

use crate::place::Setting;
use std::time::Duration;

/// The `limits` block.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Total size of a request's header fields: names, values, separators and line ends, in bytes.
    pub max_header_size_bytes: Setting<u64>,
    /// Number of a request's header fields.
    pub max_header_count: Setting<u32>,
    /// Size of one header name, in bytes.
    pub max_header_name_bytes: Setting<u64>,
    /// Size of one header value, in bytes.
    pub max_header_value_bytes: Setting<u64>,
    /// Size of a request body, in bytes. 0 refuses every body.
    pub max_body_size_bytes: Setting<u64>,
    /// Bytes buffered of one body.
    pub max_body_buffer_bytes: Setting<u64>,
    /// Bytes of one body that agents inspect.
    pub max_body_inspection_bytes: Setting<u64>,
    /// Ratio of decompressed to compressed size.
    pub max_decompression_ratio: Setting<f64>,
    /// Size of a decompressed body, in bytes.
    pub max_decompressed_size_bytes: Setting<u64>,
    /// Connections from one client address.
    pub max_connections_per_client: Setting<u32>,
    /// Concurrent connections served by one route.
    pub max_connections_per_route: Setting<u32>,
    /// Connections from all clients.
    pub max_total_connections: Setting<u32>,
    /// Idle connections kept to one upstream.
    pub max_idle_connections_per_upstream: Setting<u32>,
    /// Concurrent requests of the process.
    pub max_in_flight_requests: Setting<u32>,
    /// Concurrent requests of one worker.
    pub max_in_flight_requests_per_worker: Setting<u32>,
    /// Requests waiting to be admitted.
    pub max_queued_requests: Setting<u32>,
    /// Maximum time of one request in the queue.
    pub max_queue_wait: Setting<Duration>,
    /// Requests waiting for one agent.
    pub max_agent_queue_depth: Setting<u32>,
    /// Bytes of one body sent to agents.
    pub max_agent_body_bytes: Setting<u64>,
    /// Size of an agent's response, in bytes.
    pub max_agent_response_bytes: Setting<u64>,
    /// Requests per second of all clients on all routes; `None` is unlimited.
    pub max_requests_per_second_global: Option<Setting<u32>>,
    /// Requests per second of one client address; `None` is unlimited.
    pub max_requests_per_second_per_client: Option<Setting<u32>>,
    /// Requests per second on one route; `None` is unlimited.
    pub max_requests_per_second_per_route: Option<Setting<u32>>,
    /// Memory of the process, in bytes; `None` is unlimited.
    pub max_memory_bytes: Option<Setting<u64>>,
    /// Memory of the process, in percent of the host's; `None` is unlimited.
    pub max_memory_percent: Option<Setting<f64>>,
    /// True if requests with too many or too large headers are answered 431 instead of 429.
    pub standard_statuses: Setting<bool>,
}

/// File descriptors reserved for logs, listeners, events and configuration files. A limit on
/// connections above the rest causes a warning.
pub const RESERVED_DESCRIPTORS: u64 = 100;

/// Maximum number of connections in effect for a limit of `descriptors` open files: without the
/// reserve, or half of them if there are fewer than 200, so that a small limit admits some. At
/// least 1.
#[must_use]
pub fn max_connections(descriptors: u64) -> u64 {
    let unreserved = descriptors.saturating_sub(RESERVED_DESCRIPTORS);
    unreserved.max(descriptors / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_descriptors_are_reserved_or_half_of_fewer_than_200() {
        for (descriptors, connections) in [
            (1_000, 900),
            (201, 101),
            (200, 100),
            (199, 99),
            (150, 75),
            (100, 50),
            (2, 1),
            (1, 1),
            (0, 1),
        ] {
            assert_eq!(max_connections(descriptors), connections, "{descriptors}");
        }
    }
}
