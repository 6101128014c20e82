//! The settings of the `limits` block.

use super::EffectiveSetting;
use super::block::Block;
use proxy_model::registry::limits as rows;
use proxy_model::{Limits, Sources};

/// The settings of the `limits` block.
pub(crate) fn limits(sources: &Sources, limits: &Limits) -> Vec<EffectiveSetting> {
    let Limits {
        max_header_size_bytes,
        max_header_count,
        max_header_name_bytes,
        max_header_value_bytes,
        max_body_size_bytes,
        max_body_buffer_bytes,
        max_body_inspection_bytes,
        max_decompression_ratio,
        max_decompressed_size_bytes,
        max_connections_per_client,
        max_connections_per_route,
        max_total_connections,
        max_idle_connections_per_upstream,
        max_in_flight_requests,
        max_in_flight_requests_per_worker,
        max_queued_requests,
        max_agent_queue_depth,
        max_agent_body_bytes,
        max_agent_response_bytes,
        max_requests_per_second_global,
        max_requests_per_second_per_client,
        max_requests_per_second_per_route,
        max_memory_bytes,
        max_memory_percent,
        standard_statuses,
    } = limits;
    let mut block = Block::new(sources, "limits");
    block.put(&rows::MAX_HEADER_SIZE, [max_header_size_bytes]);
    block.put(&rows::MAX_HEADER_COUNT, [max_header_count]);
    block.put(&rows::MAX_HEADER_NAME, [max_header_name_bytes]);
    block.put(&rows::MAX_HEADER_VALUE, [max_header_value_bytes]);
    block.put(&rows::MAX_BODY_SIZE, [max_body_size_bytes]);
    block.put(&rows::MAX_BODY_BUFFER, [max_body_buffer_bytes]);
    block.put(&rows::MAX_BODY_INSPECTION, [max_body_inspection_bytes]);
    block.put(&rows::MAX_DECOMPRESSION_RATIO, [max_decompression_ratio]);
    block.put(&rows::MAX_DECOMPRESSED_SIZE, [max_decompressed_size_bytes]);
    block.put(
        &rows::MAX_CONNECTIONS_PER_CLIENT,
        [max_connections_per_client],
    );
    block.put(
        &rows::MAX_CONNECTIONS_PER_ROUTE,
        [max_connections_per_route],
    );
    block.put(&rows::MAX_TOTAL_CONNECTIONS, [max_total_connections]);
    let idle = [max_idle_connections_per_upstream];
    block.put(&rows::MAX_IDLE_CONNECTIONS_PER_UPSTREAM, idle);
    block.put(&rows::MAX_IN_FLIGHT_REQUESTS, [max_in_flight_requests]);
    let per_worker = [max_in_flight_requests_per_worker];
    block.put(&rows::MAX_IN_FLIGHT_REQUESTS_PER_WORKER, per_worker);
    block.put(&rows::MAX_QUEUED_REQUESTS, [max_queued_requests]);
    block.put(&rows::MAX_AGENT_QUEUE_DEPTH, [max_agent_queue_depth]);
    block.put(&rows::MAX_AGENT_BODY, [max_agent_body_bytes]);
    block.put(&rows::MAX_AGENT_RESPONSE, [max_agent_response_bytes]);
    block.put(
        &rows::MAX_REQUESTS_PER_SECOND_GLOBAL,
        max_requests_per_second_global,
    );
    let per_client = max_requests_per_second_per_client;
    block.put(&rows::MAX_REQUESTS_PER_SECOND_PER_CLIENT, per_client);
    let per_route = max_requests_per_second_per_route;
    block.put(&rows::MAX_REQUESTS_PER_SECOND_PER_ROUTE, per_route);
    block.put(&rows::MAX_MEMORY, max_memory_bytes);
    block.put(&rows::MAX_MEMORY_PERCENT, max_memory_percent);
    block.put(&rows::STANDARD_STATUSES, [standard_statuses]);
    block.into_settings()
}
