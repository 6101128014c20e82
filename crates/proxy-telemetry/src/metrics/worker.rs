//! Metrics of one worker, independent of the route.

use super::cell::{Counter, Gauge};
use super::enum_counters::EnumCounters;
use crate::limit_use::LimitSetting;
use crate::vocabulary::Protocol;
use proxy_errors::LimitType;

/// Metrics of one worker.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerMetrics {
    /// Requests in flight.
    pub requests_in_flight: Gauge,
    /// Open tunnels, which are not requests in flight.
    pub tunnels: Gauge,
    /// Client connections, without hibernating ones.
    pub connections_active: Gauge,
    /// Hibernating client connections.
    pub connections_idle: Gauge,
    /// Client connections accepted.
    pub connections_accepted: Counter,
    /// Successful TLS handshakes with clients.
    pub handshakes_completed: Counter,
    /// Failed TLS handshakes with clients.
    pub handshakes_failed: Counter,
    /// Connections that were closed for their PROXY protocol header.
    pub proxy_headers_failed: Counter,
    /// Requests over a rate limit that only observes.
    pub rate_limits_observed: Counter,
    /// Requests that wait for an in-flight permit.
    pub requests_queued: Gauge,
    /// Requests in flight and tunnels that began under a former configuration.
    pub requests_of_former_configurations: Gauge,
    /// Places for requests in flight that are taken, as of the last tick.
    pub places_taken: Gauge,
    protocols: [Counter; Protocol::ALL.len()],
    limits: [Counter; LimitType::ALL.len()],
    rejected: [Counter; LimitSetting::ALL.len()],
    failures: EnumCounters,
    blocked: EnumCounters,
}

/// Metrics of all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerTotal {
    /// Requests in flight.
    pub requests_in_flight: u64,
    /// Open tunnels, which are not requests in flight.
    pub tunnels: u64,
    /// Client connections, without hibernating ones.
    pub connections_active: u64,
    /// Hibernating client connections.
    pub connections_idle: u64,
    /// Client connections accepted.
    pub connections_accepted: u64,
    /// Successful TLS handshakes with clients.
    pub handshakes_completed: u64,
    /// Failed TLS handshakes with clients.
    pub handshakes_failed: u64,
    /// Connections that were closed for their PROXY protocol header.
    pub proxy_headers_failed: u64,
    /// Requests over a rate limit that only observes.
    pub rate_limits_observed: u64,
    /// Requests that wait for a place among those in flight.
    pub requests_queued: u64,
    /// Requests in flight and tunnels that began under a former configuration.
    pub requests_of_former_configurations: u64,
    /// Places for requests in flight that are taken, of the worker with the most.
    pub most_places_taken: u64,
    /// Requests by protocol, by [`Protocol::index`].
    pub protocols: [u64; Protocol::ALL.len()],
    /// Reached limits, by [`LimitType::index`].
    pub limits: [u64; LimitType::ALL.len()],
    /// Requests and connections refused for a setting, by [`LimitSetting::index`].
    pub rejected: [u64; LimitSetting::ALL.len()],
    /// Failures by index of the reason, and one more for indexes beyond the list.
    pub failures: Vec<u64>,
    /// Blocked requests by index of the reason, and one more for indexes beyond the list.
    pub blocked: Vec<u64>,
}

impl WorkerMetrics {
    pub(crate) fn new(reasons: usize) -> Self {
        Self {
            requests_in_flight: Gauge::default(),
            tunnels: Gauge::default(),
            connections_active: Gauge::default(),
            connections_idle: Gauge::default(),
            connections_accepted: Counter::default(),
            handshakes_completed: Counter::default(),
            handshakes_failed: Counter::default(),
            proxy_headers_failed: Counter::default(),
            rate_limits_observed: Counter::default(),
            requests_queued: Gauge::default(),
            requests_of_former_configurations: Gauge::default(),
            places_taken: Gauge::default(),
            protocols: Default::default(),
            limits: Default::default(),
            rejected: Default::default(),
            failures: EnumCounters::new(reasons),
            blocked: EnumCounters::new(reasons),
        }
    }

    /// Counts the beginning of a request.
    #[inline]
    pub fn request(&self, protocol: Protocol) {
        if let Some(counter) = self.protocols.get(protocol.index()) {
            counter.add(1);
        }
    }

    /// Counts a reached limit.
    pub fn limit_met(&self, limit: LimitType) {
        if let Some(counter) = self.limits.get(limit.index()) {
            counter.add(1);
        }
    }

    /// Counts a request or a connection that was refused for `setting`.
    pub fn rejected(&self, setting: LimitSetting) {
        if let Some(counter) = self.rejected.get(setting.index()) {
            counter.add(1);
        }
    }

    /// Counts a failed request; `reason` is an index into the registry's reasons.
    pub fn failed(&self, reason: u16) {
        self.failures.add(usize::from(reason));
    }

    /// Counts a request that was refused by policy; `reason` is an index into the registry's
    /// reasons.
    pub fn blocked(&self, reason: u16) {
        self.blocked.add(usize::from(reason));
    }

    pub(crate) fn add_to(&self, total: &mut WorkerTotal) {
        let Self {
            requests_in_flight,
            tunnels,
            connections_active,
            connections_idle,
            connections_accepted,
            handshakes_completed,
            handshakes_failed,
            proxy_headers_failed,
            rate_limits_observed,
            requests_queued,
            requests_of_former_configurations,
            places_taken,
            protocols,
            limits,
            rejected,
            failures,
            blocked,
        } = self;
        total.requests_in_flight += requests_in_flight.get();
        total.tunnels += tunnels.get();
        total.connections_active += connections_active.get();
        total.connections_idle += connections_idle.get();
        total.connections_accepted += connections_accepted.get();
        total.handshakes_completed += handshakes_completed.get();
        total.handshakes_failed += handshakes_failed.get();
        total.proxy_headers_failed += proxy_headers_failed.get();
        total.rate_limits_observed += rate_limits_observed.get();
        total.requests_queued += requests_queued.get();
        total.requests_of_former_configurations += requests_of_former_configurations.get();
        total.most_places_taken = total.most_places_taken.max(places_taken.get());
        for (sum, counter) in total.protocols.iter_mut().zip(protocols) {
            *sum += counter.get();
        }
        for (sum, counter) in total.limits.iter_mut().zip(limits) {
            *sum += counter.get();
        }
        for (sum, counter) in total.rejected.iter_mut().zip(rejected) {
            *sum += counter.get();
        }
        failures.add_to(&mut total.failures);
        blocked.add_to(&mut total.blocked);
    }
}

impl WorkerTotal {
    /// Number of times that `limit` was reached.
    pub fn limit(&self, limit: LimitType) -> u64 {
        self.limits.get(limit.index()).copied().unwrap_or_default()
    }

    /// Requests and connections refused for `setting`.
    pub fn rejected(&self, setting: LimitSetting) -> u64 {
        let count = self.rejected.get(setting.index()).copied();
        count.unwrap_or_default()
    }
}
