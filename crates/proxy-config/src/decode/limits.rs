//! The `limits` block.

use super::block::Block;
use super::decoder::Decoder;
use proxy_model::Limits;
use proxy_model::registry::limits as spec;

pub(super) fn limits<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Limits {
    Limits {
        max_header_size_bytes: b.setting(d, &spec::MAX_HEADER_SIZE),
        max_header_count: b.setting(d, &spec::MAX_HEADER_COUNT),
        max_header_name_bytes: b.setting(d, &spec::MAX_HEADER_NAME),
        max_header_value_bytes: b.setting(d, &spec::MAX_HEADER_VALUE),
        max_body_size_bytes: b.setting(d, &spec::MAX_BODY_SIZE),
        max_body_buffer_bytes: b.setting(d, &spec::MAX_BODY_BUFFER),
        max_body_inspection_bytes: b.setting(d, &spec::MAX_BODY_INSPECTION),
        max_decompression_ratio: b.setting(d, &spec::MAX_DECOMPRESSION_RATIO),
        max_decompressed_size_bytes: b.setting(d, &spec::MAX_DECOMPRESSED_SIZE),
        max_connections_per_client: b.setting(d, &spec::MAX_CONNECTIONS_PER_CLIENT),
        max_connections_per_route: b.setting(d, &spec::MAX_CONNECTIONS_PER_ROUTE),
        max_total_connections: b.setting(d, &spec::MAX_TOTAL_CONNECTIONS),
        max_idle_connections_per_upstream: b.setting(d, &spec::MAX_IDLE_CONNECTIONS_PER_UPSTREAM),
        max_in_flight_requests: b.setting(d, &spec::MAX_IN_FLIGHT_REQUESTS),
        max_in_flight_requests_per_worker: b.setting(d, &spec::MAX_IN_FLIGHT_REQUESTS_PER_WORKER),
        max_queued_requests: b.setting(d, &spec::MAX_QUEUED_REQUESTS),
        max_queue_wait: b.setting(d, &spec::MAX_QUEUE_WAIT),
        max_agent_queue_depth: b.setting(d, &spec::MAX_AGENT_QUEUE_DEPTH),
        max_agent_body_bytes: b.setting(d, &spec::MAX_AGENT_BODY),
        max_agent_response_bytes: b.setting(d, &spec::MAX_AGENT_RESPONSE),
        max_requests_per_second_global: b.optional(d, &spec::MAX_REQUESTS_PER_SECOND_GLOBAL),
        max_requests_per_second_per_client: b
            .optional(d, &spec::MAX_REQUESTS_PER_SECOND_PER_CLIENT),
        max_requests_per_second_per_route: b.optional(d, &spec::MAX_REQUESTS_PER_SECOND_PER_ROUTE),
        max_memory_bytes: b.optional(d, &spec::MAX_MEMORY),
        max_memory_percent: b.optional(d, &spec::MAX_MEMORY_PERCENT),
        standard_statuses: b.setting(d, &spec::STANDARD_STATUSES),
    }
}
