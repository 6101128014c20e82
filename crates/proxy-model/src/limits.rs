//! How much of everything the proxy takes.

use crate::place::Setting;

/// The `limits` block.
#[derive(Clone, Debug)]
pub struct Limits {
    /// All header fields of a request together, names and values, in bytes.
    pub max_header_size_bytes: Setting<u64>,
    /// Header fields of a request.
    pub max_header_count: Setting<u32>,
    /// One header name, in bytes.
    pub max_header_name_bytes: Setting<u64>,
    /// One header value, in bytes.
    pub max_header_value_bytes: Setting<u64>,
    /// A request body, in bytes. 0 refuses every body.
    pub max_body_size_bytes: Setting<u64>,
    /// What is buffered of one body, in bytes.
    pub max_body_buffer_bytes: Setting<u64>,
    /// What agents see of one body, in bytes.
    pub max_body_inspection_bytes: Setting<u64>,
    /// Decompressed size over compressed size.
    pub max_decompression_ratio: Setting<f64>,
    /// A decompressed body, in bytes.
    pub max_decompressed_size_bytes: Setting<u64>,
    /// Connections from one client address.
    pub max_connections_per_client: Setting<u32>,
    /// Connections that one route serves at once.
    pub max_connections_per_route: Setting<u32>,
    /// Connections from all clients.
    pub max_total_connections: Setting<u32>,
    /// Idle connections kept to one upstream.
    pub max_idle_connections_per_upstream: Setting<u32>,
    /// Requests being served at once.
    pub max_in_flight_requests: Setting<u32>,
    /// Requests being served at once by one worker.
    pub max_in_flight_requests_per_worker: Setting<u32>,
    /// Requests waiting for a place.
    pub max_queued_requests: Setting<u32>,
    /// Requests waiting for one agent.
    pub max_agent_queue_depth: Setting<u32>,
    /// What is sent of one body to agents, in bytes.
    pub max_agent_body_bytes: Setting<u64>,
    /// An agent's answer, in bytes.
    pub max_agent_response_bytes: Setting<u64>,
    /// Requests a second of all clients on all routes; none has no limit.
    pub max_requests_per_second_global: Option<Setting<u32>>,
    /// Requests a second of one client address; none has no limit.
    pub max_requests_per_second_per_client: Option<Setting<u32>>,
    /// Requests a second on one route; none has no limit.
    pub max_requests_per_second_per_route: Option<Setting<u32>>,
    /// Memory of the process, in bytes; none has no limit.
    pub max_memory_bytes: Option<Setting<u64>>,
    /// Memory of the process, in percent of the machine's; none has no limit.
    pub max_memory_percent: Option<Setting<f64>>,
    /// Whether requests with too many or too large headers are answered 431, not 429.
    pub standard_statuses: Setting<bool>,
}
