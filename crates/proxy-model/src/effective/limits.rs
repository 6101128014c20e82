//! The settings of the `limits` block.

use crate::effective::list::{List, plain};
use crate::limits::Limits;
use crate::place::Setting;
use crate::registry::limits as spec;

pub(super) fn limits(list: &mut List, limits: &Limits) {
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
        max_idle_connections_per_upstream: idle,
        max_in_flight_requests,
        max_in_flight_requests_per_worker: per_worker,
        max_queued_requests,
        max_queue_wait,
        max_agent_queue_depth,
        max_agent_body_bytes,
        max_agent_response_bytes,
        max_requests_per_second_global: global,
        max_requests_per_second_per_client: per_client,
        max_requests_per_second_per_route: per_route,
        max_memory_bytes,
        max_memory_percent,
        standard_statuses,
    } = limits;
    for (spec, size) in [
        (&spec::MAX_HEADER_SIZE, max_header_size_bytes),
        (&spec::MAX_HEADER_NAME, max_header_name_bytes),
        (&spec::MAX_HEADER_VALUE, max_header_value_bytes),
        (&spec::MAX_BODY_SIZE, max_body_size_bytes),
        (&spec::MAX_BODY_BUFFER, max_body_buffer_bytes),
        (&spec::MAX_BODY_INSPECTION, max_body_inspection_bytes),
        (&spec::MAX_DECOMPRESSED_SIZE, max_decompressed_size_bytes),
        (&spec::MAX_AGENT_BODY, max_agent_body_bytes),
        (&spec::MAX_AGENT_RESPONSE, max_agent_response_bytes),
    ] {
        list.put(spec, size, plain);
    }
    for (spec, count) in [
        (&spec::MAX_HEADER_COUNT, max_header_count),
        (
            &spec::MAX_CONNECTIONS_PER_CLIENT,
            max_connections_per_client,
        ),
        (&spec::MAX_CONNECTIONS_PER_ROUTE, max_connections_per_route),
        (&spec::MAX_TOTAL_CONNECTIONS, max_total_connections),
        (&spec::MAX_IDLE_CONNECTIONS_PER_UPSTREAM, idle),
        (&spec::MAX_IN_FLIGHT_REQUESTS, max_in_flight_requests),
        (&spec::MAX_IN_FLIGHT_REQUESTS_PER_WORKER, per_worker),
        (&spec::MAX_QUEUED_REQUESTS, max_queued_requests),
        (&spec::MAX_AGENT_QUEUE_DEPTH, max_agent_queue_depth),
    ] {
        list.put(spec, count, plain);
    }
    list.time(&spec::MAX_QUEUE_WAIT, max_queue_wait);
    rates(list, [global, per_client, per_route]);
    list.put(
        &spec::MAX_DECOMPRESSION_RATIO,
        max_decompression_ratio,
        plain,
    );
    memory(list, max_memory_bytes.as_ref(), max_memory_percent.as_ref());
    list.put(&spec::STANDARD_STATUSES, standard_statuses, plain);
}

fn memory(list: &mut List, bytes: Option<&Setting<u64>>, percent: Option<&Setting<f64>>) {
    list.put_any(&spec::MAX_MEMORY, bytes, plain);
    list.put_any(&spec::MAX_MEMORY_PERCENT, percent, plain);
}

fn rates(list: &mut List, rates: [&Option<Setting<u32>>; 3]) {
    let specs = [
        &spec::MAX_REQUESTS_PER_SECOND_GLOBAL,
        &spec::MAX_REQUESTS_PER_SECOND_PER_CLIENT,
        &spec::MAX_REQUESTS_PER_SECOND_PER_ROUTE,
    ];
    for (spec, rate) in specs.into_iter().zip(rates) {
        list.put_any(spec, rate.as_ref(), plain);
    }
}
