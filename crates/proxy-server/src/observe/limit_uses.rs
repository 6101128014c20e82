//! The use of limits, for statistics and metrics.

use crate::runtime::system_memory;
use proxy_limits::ClientShareLimit;
use proxy_model::Limits;
use proxy_pipeline::Shared;
use proxy_pool::IdleLimit;
use proxy_telemetry::{
    LimitSetting, LimitSource, LimitUse, Quantity, Snapshot, resident_memory_bytes,
};
use std::sync::Arc;

/// State of the limits of one configuration, to report their use.
#[derive(Debug)]
pub(crate) struct LimitUses {
    pub(crate) limits: Limits,
    pub(crate) shared: Arc<Shared>,
    /// Connections of each route.
    pub(crate) routes: Vec<ClientShareLimit>,
    /// Idle connections of each upstream without a number of its own.
    pub(crate) idle: Vec<IdleLimit>,
}

impl LimitSource for LimitUses {
    fn uses(&self, snapshot: &Snapshot) -> Vec<LimitUse> {
        let uses = LimitSetting::ALL.iter().map(|setting| LimitUse {
            setting: *setting,
            current: self.current(*setting, snapshot),
            maximum: self.maximum(*setting),
        });
        uses.collect()
    }
}

impl LimitUses {
    fn current(&self, setting: LimitSetting, snapshot: &Snapshot) -> Option<Quantity> {
        let shared = &self.shared;
        let most = |counts: &mut dyn Iterator<Item = u32>| counts.max().unwrap_or(0);
        let count = match setting {
            LimitSetting::MaxConnectionsPerClient => shared.clients.greatest(),
            LimitSetting::MaxConnectionsPerRoute => {
                most(&mut self.routes.iter().map(ClientShareLimit::held))
            }
            LimitSetting::MaxTotalConnections => shared.connections.held(),
            LimitSetting::MaxIdleConnectionsPerUpstream => {
                most(&mut self.idle.iter().map(IdleLimit::held))
            }
            LimitSetting::MaxInFlightRequests => shared.in_flight.permits().held(),
            LimitSetting::MaxQueuedRequests => shared.in_flight.waiting().held(),
            LimitSetting::MaxInFlightRequestsPerWorker => {
                return Some(Quantity::Count(snapshot.workers.most_places_taken));
            }
            LimitSetting::MaxAgentQueueDepth => {
                let agents = snapshot.agents.iter();
                let depths = agents.map(|(_, total)| total.queue_depth);
                return Some(Quantity::Count(depths.max().unwrap_or(0)));
            }
            LimitSetting::MaxMemory => return resident_memory_bytes().map(Quantity::Count),
            LimitSetting::MaxMemoryPercent => return used_percent().map(Quantity::Decimal),
            LimitSetting::MaxHeaderSize
            | LimitSetting::MaxHeaderCount
            | LimitSetting::MaxHeaderName
            | LimitSetting::MaxHeaderValue
            | LimitSetting::MaxBodySize
            | LimitSetting::MaxBodyBuffer
            | LimitSetting::MaxBodyInspection
            | LimitSetting::MaxDecompressionRatio
            | LimitSetting::MaxDecompressedSize
            | LimitSetting::MaxAgentBody
            | LimitSetting::MaxAgentResponse
            | LimitSetting::MaxRequestsPerSecondGlobal
            | LimitSetting::MaxRequestsPerSecondPerClient
            | LimitSetting::MaxRequestsPerSecondPerRoute
            | LimitSetting::RouteRateLimit
            | LimitSetting::RouteBodySize
            | LimitSetting::PoolConnections => return None,
        };
        Some(Quantity::Count(count.into()))
    }

    fn maximum(&self, setting: LimitSetting) -> Option<Quantity> {
        let limits = &self.limits;
        let count = match setting {
            LimitSetting::MaxHeaderSize => *limits.max_header_size_bytes,
            LimitSetting::MaxHeaderCount => u64::from(*limits.max_header_count),
            LimitSetting::MaxHeaderName => *limits.max_header_name_bytes,
            LimitSetting::MaxHeaderValue => *limits.max_header_value_bytes,
            LimitSetting::MaxBodySize => *limits.max_body_size_bytes,
            LimitSetting::MaxBodyBuffer => *limits.max_body_buffer_bytes,
            LimitSetting::MaxBodyInspection => *limits.max_body_inspection_bytes,
            LimitSetting::MaxDecompressionRatio => {
                return Some(Quantity::Decimal(*limits.max_decompression_ratio));
            }
            LimitSetting::MaxDecompressedSize => *limits.max_decompressed_size_bytes,
            LimitSetting::MaxConnectionsPerClient => u64::from(*limits.max_connections_per_client),
            LimitSetting::MaxConnectionsPerRoute => u64::from(*limits.max_connections_per_route),
            // Lowered to the descriptors that the process may have.
            LimitSetting::MaxTotalConnections => u64::from(self.shared.connections.max()),
            LimitSetting::MaxIdleConnectionsPerUpstream => {
                u64::from(*limits.max_idle_connections_per_upstream)
            }
            LimitSetting::MaxInFlightRequests => u64::from(*limits.max_in_flight_requests),
            LimitSetting::MaxInFlightRequestsPerWorker => {
                u64::from(*limits.max_in_flight_requests_per_worker)
            }
            LimitSetting::MaxQueuedRequests => u64::from(*limits.max_queued_requests),
            LimitSetting::MaxAgentQueueDepth => u64::from(*limits.max_agent_queue_depth),
            LimitSetting::MaxAgentBody => *limits.max_agent_body_bytes,
            LimitSetting::MaxAgentResponse => *limits.max_agent_response_bytes,
            LimitSetting::MaxRequestsPerSecondGlobal => {
                u64::from(*limits.max_requests_per_second_global?)
            }
            LimitSetting::MaxRequestsPerSecondPerClient => {
                u64::from(*limits.max_requests_per_second_per_client?)
            }
            LimitSetting::MaxRequestsPerSecondPerRoute => {
                u64::from(*limits.max_requests_per_second_per_route?)
            }
            LimitSetting::MaxMemory => *limits.max_memory_bytes?,
            LimitSetting::MaxMemoryPercent => {
                return limits.max_memory_percent.map(|max| Quantity::Decimal(*max));
            }
            // Each route and upstream has its own.
            LimitSetting::RouteRateLimit
            | LimitSetting::RouteBodySize
            | LimitSetting::PoolConnections => return None,
        };
        Some(Quantity::Count(count))
    }
}

/// Resident memory in percent of the machine's or control group's, to the tenth.
fn used_percent() -> Option<f64> {
    let (used, total) = (resident_memory_bytes()?, system_memory::total_bytes()?);
    let permille = used.checked_mul(1_000)?.checked_div(total)?;
    Some(f64::from(u32::try_from(permille).ok()?) / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_model::registry::all;

    /// Settings of the block that are not quantities.
    const NO_LIMITS: [&str; 2] = ["limits.max-queue-wait-secs", "limits.standard-statuses"];

    #[test]
    fn every_limit_of_the_registry_has_its_use() {
        let rows = all().into_iter().map(|row| row.path);
        let rows = rows.filter(|path| path.starts_with("limits."));
        let limits: Vec<_> = rows.filter(|path| !NO_LIMITS.contains(path)).collect();

        let listed = LimitSetting::ALL.iter().map(|one| one.path());
        let (of_block, others): (Vec<_>, Vec<_>) =
            listed.partition(|path| path.starts_with("limits."));

        assert_eq!(of_block, limits);
        let mut unknown = others
            .iter()
            .filter(|path| all().iter().all(|row| row.path != **path));
        assert_eq!(unknown.next(), None);
    }
}
