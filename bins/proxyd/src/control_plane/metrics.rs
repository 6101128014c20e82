//! Metrics of the control plane's client.

use control_client::{Observation, RefusalReason};
use proxy_telemetry::{Gauge, Registry, names};
use std::sync::Arc;

/// Gauges, which are exported while the client runs.
#[derive(Debug)]
pub(super) struct ClientMetrics {
    connected: Arc<Gauge>,
    last_contact: Arc<Gauge>,
    generation: Arc<Gauge>,
}

impl ClientMetrics {
    /// Registers all metrics, with values for the time before the first response.
    pub(super) fn new(registry: &Registry) -> Self {
        for reason in RefusalReason::ALL {
            // Exports 0, so that alerts see the first increment.
            registry.counter(&names::CONTROL_PLANE_REFUSALS_TOTAL, [reason.name()]);
        }
        Self {
            connected: registry.gauge(&names::CONTROL_PLANE_CONNECTED, []),
            last_contact: registry.gauge(&names::CONTROL_PLANE_LAST_CONTACT_TIMESTAMP_SECONDS, []),
            generation: registry.gauge(&names::CONTROL_PLANE_BUNDLE_GENERATION, []),
        }
    }

    pub(super) fn update(&self, registry: &Registry, seen: &Observation) {
        let Observation {
            connected,
            last_contact,
            order,
            refusals,
        } = seen;
        self.connected.set(u64::from(*connected));
        let seconds = last_contact.and_then(|at| u64::try_from(at.as_second()).ok());
        self.last_contact.set(seconds.unwrap_or_default());
        self.generation.set(*order);
        for reason in refusals {
            let counter = registry.counter(&names::CONTROL_PLANE_REFUSALS_TOTAL, [reason.name()]);
            counter.add(1);
        }
    }
}
