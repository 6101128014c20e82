//! The body of `/admin/stats`.

use crate::state::{AdminState, Sources};
use proxy_limits::ConcurrencyLimit;
use proxy_model::Limits;
use proxy_model::registry::limits;
use proxy_telemetry::{Limit, LimitUse, MemoryUse, Process, Snapshot};
use serde_json::Value;

pub(crate) fn document(state: &AdminState) -> Value {
    let Sources {
        build: _,
        lifecycle: _,
        registry,
        in_flight,
        memory,
        queued,
        connections,
        health_changes: _,
        target_changes: _,
    } = &state.sources;
    let snapshot = registry.snapshot();
    let rows = [
        (
            limits::MAX_IN_FLIGHT_REQUESTS.name(),
            in_flight,
            Limit::InFlightRequests,
        ),
        (
            limits::MAX_QUEUED_REQUESTS.name(),
            queued,
            Limit::QueueDepth,
        ),
        (
            limits::MAX_TOTAL_CONNECTIONS.name(),
            connections,
            Limit::ConnectionCount,
        ),
    ];
    let used = rows.map(|(name, gauge, limit)| limit_use(name, gauge, limit, &snapshot));
    let plan = state.plan.load();
    let each = limits_of_requests(&plan.plan.model().limits, &snapshot);
    let used: Vec<_> = used.into_iter().chain(each).collect();
    let memory = MemoryUse {
        rss_bytes: Process::read().resident_bytes,
        limit_bytes: memory.max_bytes(),
        shedding: memory.is_shedding(),
    };
    snapshot.stats(&used, memory)
}

/// Limits that each request is held to by itself, so that there is no use of them in between.
fn limits_of_requests(
    settings: &Limits,
    snapshot: &Snapshot,
) -> impl Iterator<Item = LimitUse<'static>> {
    let rate = settings.max_requests_per_second_global;
    let rows = [
        (
            limits::MAX_HEADER_SIZE.name(),
            Some(*settings.max_header_size_bytes),
            Limit::HeaderSize,
        ),
        (
            limits::MAX_HEADER_COUNT.name(),
            Some(u64::from(*settings.max_header_count)),
            Limit::HeaderCount,
        ),
        (
            limits::MAX_BODY_SIZE.name(),
            Some(*settings.max_body_size_bytes),
            Limit::BodySize,
        ),
        (
            limits::MAX_BODY_BUFFER.name(),
            Some(*settings.max_body_buffer_bytes),
            Limit::BufferSize,
        ),
        (
            limits::MAX_DECOMPRESSED_SIZE.name(),
            Some(*settings.max_decompressed_size_bytes),
            Limit::DecompressionSize,
        ),
        (
            limits::MAX_REQUESTS_PER_SECOND_GLOBAL.name(),
            rate.map(|rate| u64::from(*rate)),
            Limit::RequestRate,
        ),
    ];
    let rejected = rows.map(|(name, limit, of)| LimitUse {
        name,
        current: None,
        limit,
        rejected: snapshot.workers.limit(of),
    });
    rejected.into_iter()
}

fn limit_use<'a>(
    name: &'a str,
    gauge: &ConcurrencyLimit,
    limit: Limit,
    snapshot: &Snapshot,
) -> LimitUse<'a> {
    LimitUse {
        name,
        current: Some(gauge.held().into()),
        limit: Some(gauge.max().into()),
        rejected: snapshot.workers.limit(limit),
    }
}
