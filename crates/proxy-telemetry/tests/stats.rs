//! The document of `/admin/stats`.

use proxy_telemetry::{
    LimitSetting, LimitSource, LimitUse, MemoryUse, Outcome, Quantity, Registry, RegistrySettings,
    Snapshot,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
struct Fixed;

impl LimitSource for Fixed {
    fn uses(&self, snapshot: &Snapshot) -> Vec<LimitUse> {
        vec![
            LimitUse {
                setting: LimitSetting::MaxInFlightRequests,
                current: Some(Quantity::Count(snapshot.workers.requests_in_flight)),
                maximum: Some(Quantity::Count(10_000)),
            },
            LimitUse {
                setting: LimitSetting::MaxMemoryPercent,
                current: None,
                maximum: Some(Quantity::Decimal(12.5)),
            },
        ]
    }
}

#[test]
fn the_document_has_the_documented_shape() {
    let registry = Registry::new(RegistrySettings {
        reasons: &["connect_refused", "connect_timeout"],
        max_series: 10,
    });
    let cells = registry.route(0, "api");
    for (status, millis) in [(200, 8), (201, 8), (404, 8), (502, 8)] {
        cells.record(&Outcome {
            status,
            took: Duration::from_millis(millis),
            bytes_in: 0,
            bytes_out: 0,
            failed: status == 502,
            aborted: false,
        });
    }
    registry.route(1, "quiet");
    registry.worker(0).failed(0);
    registry.worker(0).requests_in_flight.add(1);
    registry.worker(0).requests_of_former_configurations.add(1);
    registry.worker(1).connections_active.add(2);
    registry.worker(1).connections_idle.add(3);
    registry.worker(1).rejected(LimitSetting::MaxMemoryPercent);
    registry.set_limits(Arc::new(Fixed));
    let memory = MemoryUse {
        rss_bytes: Some(4096),
        limit_bytes: None,
        shedding: false,
    };

    let document = registry.snapshot().stats(memory);

    let expected = json!({
        "requests_total": 4,
        "requests_in_flight": 1,
        "requests_of_former_configurations": 1,
        "connections_active": 2,
        "connections_idle": 3,
        "by_status": {"2xx": 2, "4xx": 1, "5xx": 1},
        "by_route": {
            "api": {
                "requests": 4,
                "errors": 1,
                "latency_ms": {"p50": 7.5, "p95": 10.0, "p99": 10.0},
            },
            "quiet": {
                "requests": 0,
                "errors": 0,
                "latency_ms": {"p50": null, "p95": null, "p99": null},
            },
        },
        "by_reason": {"connect_refused": 1},
        "limits": {
            "max-in-flight-requests": {"current": 1, "limit": 10_000, "rejected": 0},
            "max-memory-percent": {"current": null, "limit": 12.5, "rejected": 1},
        },
        "memory": {"rss_bytes": 4096, "limit_bytes": null, "shedding": false},
    });
    assert_eq!(document, expected);
}
