//! Traffic of each route since the active bundle was applied, for heartbeats.

use control_wire::{ConnectionTraffic, LATENCY_BOUNDS_MS, RouteTraffic, Traffic};
use proxy_telemetry::{BOUNDS_NS, HistogramTotal, RouteTotal, Snapshot};
use std::collections::BTreeMap;

/// Maximum number of routes in a heartbeat.
const MAX_ROUTES: usize = 500;
const MAX_REASONS: usize = 100;
const MAX_STATUSES: usize = 100;
const NS_PER_MS: u64 = 1_000_000;
const NS_PER_US: u128 = 1_000;

/// Counts by upper bound in [`LATENCY_BOUNDS_MS`], and above the last one.
type Buckets = [u64; LATENCY_BOUNDS_MS.len() + 1];

/// Counts traffic since a snapshot.
#[derive(Debug, Default)]
pub(crate) struct TrafficMeter {
    before: BTreeMap<String, RouteTraffic>,
    connections_before: ConnectionTraffic,
}

impl TrafficMeter {
    /// Counts from `snapshot` on.
    pub(crate) fn begin(&mut self, snapshot: &Snapshot) {
        self.before = totals(snapshot).collect();
        self.connections_before = connections(snapshot);
    }

    /// Returns the counts between the first snapshot and this one. Above [`MAX_ROUTES`], the routes
    /// with the fewest requests are omitted.
    pub(crate) fn read(&self, snapshot: &Snapshot) -> Traffic {
        let counted = totals(snapshot).map(|(name, total)| {
            let since = match self.before.get(&name) {
                Some(before) => difference(total, before),
                None => total,
            };
            (name, since)
        });
        let mut routes: Vec<_> = counted.filter(|(_, since)| since.requests > 0).collect();
        routes.sort_by_key(|(_, since)| std::cmp::Reverse(since.requests));
        routes.truncate(MAX_ROUTES);
        let routes = routes.into_iter().collect();
        let connections = connections_since(connections(snapshot), self.connections_before);
        Traffic {
            routes,
            connections: Some(connections),
        }
    }
}

fn totals(snapshot: &Snapshot) -> impl Iterator<Item = (String, RouteTraffic)> {
    let routes = snapshot.routes.iter();
    routes.map(|(name, total)| (name.to_string(), traffic(total, snapshot)))
}

fn connections(snapshot: &Snapshot) -> ConnectionTraffic {
    let workers = &snapshot.workers;
    ConnectionTraffic {
        accepted: workers.connections_accepted,
        handshakes_completed: workers.handshakes_completed,
        handshakes_failed: workers.handshakes_failed,
        proxy_headers_failed: workers.proxy_headers_failed,
    }
}

fn connections_since(now: ConnectionTraffic, before: ConnectionTraffic) -> ConnectionTraffic {
    let ConnectionTraffic {
        accepted,
        handshakes_completed,
        handshakes_failed,
        proxy_headers_failed,
    } = now;
    ConnectionTraffic {
        accepted: accepted.saturating_sub(before.accepted),
        handshakes_completed: handshakes_completed.saturating_sub(before.handshakes_completed),
        handshakes_failed: handshakes_failed.saturating_sub(before.handshakes_failed),
        proxy_headers_failed: proxy_headers_failed.saturating_sub(before.proxy_headers_failed),
    }
}

fn traffic(total: &RouteTotal, snapshot: &Snapshot) -> RouteTraffic {
    let reasons = snapshot.failures_of(total).into_iter();
    let reasons = reasons.map(|(reason, count)| (reason.to_owned(), count));
    let latency_us = u64::try_from(total.duration.sum_ns / NS_PER_US);
    RouteTraffic {
        requests: total.requests(),
        errors: total.server_errors(),
        reasons: reasons.take(MAX_REASONS).collect(),
        latency: buckets(&total.duration),
        statuses: total.by_status().take(MAX_STATUSES).collect(),
        bytes_in: Some(total.bytes_in),
        bytes_out: Some(total.bytes_out),
        latency_us: Some(latency_us.unwrap_or(u64::MAX)),
        first_byte: Some(buckets(&total.first_byte)),
        sizes: total.by_size().collect(),
    }
}

fn buckets(durations: &HistogramTotal) -> Buckets {
    let mut counts = Buckets::default();
    let last = [u64::MAX];
    for (count, bound_ns) in durations.buckets.iter().zip(BOUNDS_NS.iter().chain(&last)) {
        // A bucket that overlaps two buckets of the report is added to the slower one.
        let bounds = LATENCY_BOUNDS_MS.iter();
        let below = bounds.take_while(|ms| u64::from(**ms) * NS_PER_MS < *bound_ns);
        if let Some(bucket) = counts.get_mut(below.count()) {
            *bucket += count;
        }
    }
    counts
}

/// Subtracts counters, which only grow.
fn difference(total: RouteTraffic, before: &RouteTraffic) -> RouteTraffic {
    let RouteTraffic {
        requests,
        errors,
        reasons,
        latency,
        statuses,
        bytes_in,
        bytes_out,
        latency_us,
        first_byte,
        sizes,
    } = total;
    let sum = |now: Option<u64>, before: Option<u64>| {
        now.map(|now| now.saturating_sub(before.unwrap_or_default()))
    };
    RouteTraffic {
        requests: requests.saturating_sub(before.requests),
        errors: errors.saturating_sub(before.errors),
        reasons: counts_since(reasons, &before.reasons),
        latency: buckets_since(latency, before.latency),
        statuses: counts_since(statuses, &before.statuses),
        bytes_in: sum(bytes_in, before.bytes_in),
        bytes_out: sum(bytes_out, before.bytes_out),
        latency_us: sum(latency_us, before.latency_us),
        first_byte: first_byte.map(|now| buckets_since(now, before.first_byte.unwrap_or_default())),
        sizes: counts_since(sizes, &before.sizes),
    }
}

fn buckets_since(mut now: Buckets, before: Buckets) -> Buckets {
    for (count, before) in now.iter_mut().zip(before) {
        *count = count.saturating_sub(before);
    }
    now
}

fn counts_since<K: Ord>(now: BTreeMap<K, u64>, before: &BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let since = now.into_iter().map(|(key, count)| {
        let old = before.get(&key).copied().unwrap_or_default();
        (key, count.saturating_sub(old))
    });
    since.filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_telemetry::{Outcome, Registry, RegistrySettings};
    use std::time::Duration;

    fn outcome(status: u16) -> Outcome {
        Outcome {
            status,
            took: Duration::from_millis(8),
            bytes_in: 10,
            bytes_out: 300,
            failed: false,
            aborted: false,
        }
    }

    #[test]
    fn a_report_has_the_counts_since_the_bundles_activation() {
        let registry = Registry::new(RegistrySettings {
            reasons: &[],
            max_series: 10,
        });
        let (route, worker) = (registry.route(0, "api"), registry.worker(0));
        let serve = |status| {
            route.record(&outcome(status));
            route.stream(Duration::from_millis(30));
            worker.connections_accepted.add(2);
            worker.handshakes_completed.add(1);
            worker.handshakes_failed.add(1);
        };
        serve(200);
        let mut meter = TrafficMeter::default();
        meter.begin(&registry.snapshot());
        serve(200);
        serve(404);
        let traffic = meter.read(&registry.snapshot());
        let route = traffic.routes.get("api").cloned().unwrap_or_default();
        assert_eq!(route.requests, 2);
        assert_eq!(route.statuses, BTreeMap::from([(200, 1), (404, 1)]));
        assert_eq!((route.bytes_in, route.bytes_out), (Some(20), Some(600)));
        assert_eq!(route.sizes, BTreeMap::from([(9, 2)]), "256 to 511 bytes");
        let us = route.latency_us.unwrap_or_default();
        assert!((15_900..16_100).contains(&us), "{us}");
        let first_byte = route.first_byte.unwrap_or_default();
        assert_eq!(first_byte, [0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]);
        let expected = ConnectionTraffic {
            accepted: 4,
            handshakes_completed: 2,
            handshakes_failed: 2,
            proxy_headers_failed: 0,
        };
        assert_eq!(traffic.connections, Some(expected));
    }
}
