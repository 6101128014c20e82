//! The body of `/admin/stats`.

use crate::state::{AdminState, Sources};
use proxy_limits::ConcurrencyLimit;
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
    let memory = MemoryUse {
        rss_bytes: Process::read().resident_bytes,
        limit_bytes: memory.max_bytes(),
        shedding: memory.is_shedding(),
    };
    snapshot.stats(&used, memory)
}

fn limit_use<'a>(
    name: &'a str,
    gauge: &ConcurrencyLimit,
    limit: Limit,
    snapshot: &Snapshot,
) -> LimitUse<'a> {
    LimitUse {
        name,
        current: gauge.held().into(),
        limit: Some(gauge.max().into()),
        rejected: snapshot.workers.limit(limit),
    }
}
