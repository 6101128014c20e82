//! The counters of a proxy at a moment, as its admin interface gives them.

use crate::exposition::{Sample, samples};
use crate::histogram::Histogram;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Number of classes of statuses, from 1xx to 5xx.
pub(crate) const CLASSES: usize = 5;

/// Counters since the start of the proxy, and gauges of this moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) process: ProcessReading,
    /// Routes by name.
    pub(crate) routes: BTreeMap<String, RouteReading>,
    /// By name.
    pub(crate) upstreams: BTreeMap<String, UpstreamReading>,
    /// Limits by setting of the `limits` block.
    pub(crate) limits: BTreeMap<String, LimitReading>,
    /// Times until the agent's answer, by agent and event.
    pub(crate) agents: BTreeMap<(String, String), Histogram>,
}

/// The process as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessReading {
    pub(crate) version: String,
    /// Seconds since the start.
    pub(crate) uptime: f64,
    /// Counter of activated configurations, from 1.
    pub(crate) generation: f64,
    pub(crate) in_flight: f64,
    pub(crate) queued: f64,
    pub(crate) tunnels: f64,
    /// Connections of clients, idle ones too.
    pub(crate) connections: f64,
    /// Resident memory in bytes.
    pub(crate) memory: f64,
}

/// The counters of a route.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteReading {
    /// Requests by class of status, from 1xx.
    pub(crate) classes: [f64; CLASSES],
    /// Requests that failed for a reason of the proxy or the upstream, or were answered with 5xx.
    pub(crate) failures: f64,
    /// Body bytes from clients.
    pub(crate) received: f64,
    /// Body bytes to clients.
    pub(crate) sent: f64,
    /// Time from the first byte of a request to the last of its response.
    pub(crate) duration: Histogram,
}

/// The counters of an upstream.
#[derive(Clone, Debug, Default)]
pub(crate) struct UpstreamReading {
    /// Requests sent, or tried to be; retries too.
    pub(crate) attempts: f64,
    /// Attempts that failed, by reason.
    pub(crate) failures: BTreeMap<String, f64>,
    /// Time from the start of an attempt to the head of its response.
    pub(crate) duration: Histogram,
    /// Open connections, in use or idle.
    pub(crate) connections: f64,
    /// State of the circuit breaker that is the furthest from closed; `None` without a breaker.
    pub(crate) breaker: Option<Breaker>,
    pub(crate) targets: Vec<TargetReading>,
}

/// State of a circuit breaker, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Breaker {
    Closed,
    HalfOpen,
    Open,
}

/// The use of a limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitReading {
    /// `None` for rates, and for limits on each single request.
    pub(crate) current: Option<f64>,
    /// `None` where no limit is set.
    pub(crate) maximum: Option<f64>,
    pub(crate) rejected: f64,
}

/// A target, as `/admin/upstreams` has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TargetReading {
    pub(crate) address: String,
    pub(crate) healthy: bool,
    pub(crate) active_connections: f64,
    pub(crate) total_requests: f64,
    pub(crate) failed_requests: f64,
    pub(crate) backup: bool,
    /// Reasons for which new requests are refused.
    pub(crate) causes: Vec<String>,
    pub(crate) last_error: Option<String>,
}

/// The body of `/admin/upstreams`.
#[derive(Debug, Deserialize)]
pub(crate) struct UpstreamsDocument {
    upstreams: BTreeMap<String, UpstreamDocument>,
}

#[derive(Debug, Deserialize)]
struct UpstreamDocument {
    targets: Vec<TargetReading>,
}

impl Reading {
    /// The counters in the texts of `/metrics` and `/admin/upstreams`.
    pub(crate) fn new(metrics: &str, document: UpstreamsDocument) -> Self {
        let mut reading = Self::default();
        for (name, upstream) in document.upstreams {
            let known = reading.upstreams.entry(name).or_default();
            known.targets = upstream.targets;
        }
        for sample in samples(metrics) {
            reading.add(&sample);
        }
        reading
    }

    fn add(&mut self, sample: &Sample<'_>) {
        self.process.add(sample);
        let Some(name) = sample.name.strip_prefix("proxy_") else {
            return;
        };
        let value = sample.value;
        match name {
            "requests_total" => {
                let class = sample.label("status").bytes().next().unwrap_or_default();
                let class = class.wrapping_sub(b'1');
                if let Some(count) = self.route(sample).classes.get_mut(usize::from(class)) {
                    *count += value;
                }
            }
            "request_failures_total" => self.route(sample).failures = value,
            "received_bytes_total" => self.route(sample).received = value,
            "sent_bytes_total" => self.route(sample).sent = value,
            "upstream_attempts_total" => self.upstream(sample).attempts = value,
            "upstream_failures_total" => {
                let reason = sample.label("reason").to_owned();
                self.upstream(sample).failures.insert(reason, value);
            }
            "connection_pool_size" => self.upstream(sample).connections = value,
            "circuit_breaker_state" => self.add_breaker(sample),
            "limit_use" => self.limit(sample).current = Some(value),
            "limit_maximum" => self.limit(sample).maximum = Some(value),
            "limit_rejections_total" => self.limit(sample).rejected = value,
            name => self.add_duration(name, sample),
        }
    }

    /// Adds a part of a histogram.
    fn add_duration(&mut self, name: &str, sample: &Sample<'_>) {
        let Some((owner, part)) = name.split_once("_duration_seconds_") else {
            return;
        };
        let histogram = match owner {
            "request" => &mut self.route(sample).duration,
            "upstream" => &mut self.upstream(sample).duration,
            "agent" => {
                let key = (sample.label("agent"), sample.label("event"));
                let key = (key.0.to_owned(), key.1.to_owned());
                self.agents.entry(key).or_default()
            }
            _ => return,
        };
        match part {
            "bucket" => {
                if let Ok(bound) = sample.label("le").parse() {
                    histogram.push(bound, sample.value);
                }
            }
            "sum" => histogram.set_sum(sample.value),
            _ => {}
        }
    }

    /// Adds the breaker of an upstream: agents' are of no route.
    fn add_breaker(&mut self, sample: &Sample<'_>) {
        if sample.label("route").is_empty() {
            return;
        }
        let state = match sample.value {
            value if value < 0.5 => Breaker::Closed,
            value if value < 1.5 => Breaker::Open,
            _ => Breaker::HalfOpen,
        };
        if let Some(upstream) = self.upstreams.get_mut(sample.label("component")) {
            upstream.breaker = upstream.breaker.max(Some(state));
        }
    }

    fn route(&mut self, sample: &Sample<'_>) -> &mut RouteReading {
        let name = sample.label("route");
        self.routes.entry(name.to_owned()).or_default()
    }

    fn upstream(&mut self, sample: &Sample<'_>) -> &mut UpstreamReading {
        let name = sample.label("upstream");
        self.upstreams.entry(name.to_owned()).or_default()
    }

    fn limit(&mut self, sample: &Sample<'_>) -> &mut LimitReading {
        let setting = sample.label("setting");
        self.limits.entry(setting.to_owned()).or_default()
    }
}

impl ProcessReading {
    fn add(&mut self, sample: &Sample<'_>) {
        let gauge = match sample.name {
            "proxy_build_info" => {
                sample.label("version").clone_into(&mut self.version);
                return;
            }
            "proxy_uptime_seconds" => &mut self.uptime,
            "proxy_config_generation" => &mut self.generation,
            "proxy_requests_in_flight" => &mut self.in_flight,
            "proxy_requests_queued" => &mut self.queued,
            "proxy_tunnels" => &mut self.tunnels,
            "proxy_open_connections" => &mut self.connections,
            "proxy_memory_usage_bytes" => &mut self.memory,
            _ => return,
        };
        *gauge = sample.value;
    }
}

impl RouteReading {
    /// Requests that are over.
    pub(crate) fn requests(&self) -> f64 {
        self.classes.iter().sum()
    }
}

/// The reading of a proxy with one route, one upstream and these counts.
#[cfg(test)]
pub(crate) fn sample_reading(uptime: u32, requests: u32, failures: u32) -> Reading {
    let metrics = format!(
        "proxy_build_info{{version=\"1.2.3\",commit=\"abc\"}} 1\n\
         proxy_uptime_seconds {uptime}.000000000\n\
         proxy_config_generation 2\n\
         proxy_requests_in_flight 3\n\
         proxy_requests_queued 1\n\
         proxy_open_connections 12\n\
         proxy_memory_usage_bytes 50331648\n\
         proxy_requests_total{{route=\"shop\",status=\"200\"}} {requests}\n\
         proxy_requests_total{{route=\"shop\",status=\"502\"}} {failures}\n\
         proxy_requests_total{{route=\"a\\u{{1b}}[2Jb\",status=\"404\"}} 1\n\
         proxy_request_failures_total{{route=\"shop\"}} {failures}\n\
         proxy_received_bytes_total{{route=\"shop\"}} {requests}\n\
         proxy_sent_bytes_total{{route=\"shop\"}} {requests}000\n\
         proxy_request_duration_seconds_bucket{{route=\"shop\",le=\"0.01\"}} {requests}\n\
         proxy_request_duration_seconds_bucket{{route=\"shop\",le=\"+Inf\"}} {requests}\n\
         proxy_request_duration_seconds_sum{{route=\"shop\"}} {requests}.0\n\
         proxy_upstream_attempts_total{{upstream=\"app\"}} {requests}\n\
         proxy_upstream_failures_total{{upstream=\"app\",reason=\"connect_refused\"}} {failures}\n\
         proxy_upstream_duration_seconds_bucket{{upstream=\"app\",le=\"0.01\"}} {requests}\n\
         proxy_upstream_duration_seconds_bucket{{upstream=\"app\",le=\"+Inf\"}} {requests}\n\
         proxy_upstream_duration_seconds_sum{{upstream=\"app\"}} {requests}.0\n\
         proxy_agent_duration_seconds_bucket{{agent=\"waf\",event=\"request-headers\",le=\"0.01\"}} {requests}\n\
         proxy_agent_duration_seconds_sum{{agent=\"waf\",event=\"request-headers\"}} 1.0\n\
         proxy_connection_pool_size{{upstream=\"app\"}} 4\n\
         proxy_circuit_breaker_state{{component=\"app\",route=\"shop\"}} 1\n\
         proxy_circuit_breaker_state{{component=\"app\",route=\"other\"}} 2\n\
         proxy_circuit_breaker_state{{component=\"waf\",route=\"\"}} 1\n\
         proxy_limit_use{{setting=\"max-in-flight-requests\"}} 3\n\
         proxy_limit_maximum{{setting=\"max-in-flight-requests\"}} 4\n\
         proxy_limit_rejections_total{{setting=\"max-in-flight-requests\"}} {failures}\n\
         proxy_limit_rejections_total{{setting=\"max-requests-per-second-global\"}} 0\n",
    );
    let metrics = metrics.replace("\\u{1b}", "\u{1b}");
    let document = serde_json::json!({"upstreams": {"app": {"healthy": true, "targets": [
        {"address": "10.0.0.1:80", "healthy": true, "active_connections": 1, "total_requests": requests,
         "failed_requests": 0, "causes": []},
        {"address": "10.0.0.2:80", "healthy": false, "active_connections": 0, "total_requests": 0,
         "failed_requests": failures, "causes": ["active_check"], "last_error": "refused\u{1b}[31m"},
    ]}}});
    let document = serde_json::from_value(document).unwrap_or_else(|error| panic!("{error}"));
    Reading::new(&metrics, document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_has_the_values_of_the_interface() {
        let reading = sample_reading(60, 100, 5);
        assert_eq!(reading.process.version, "1.2.3");
        let shop = &reading.routes["shop"];
        assert_eq!(
            shop.classes.map(|count| format!("{count}")),
            ["0", "100", "0", "0", "5"]
        );
        assert_eq!(
            format!("{} {} {}", shop.requests(), shop.received, shop.sent),
            "105 100 100000"
        );
        assert_eq!(shop.duration.mean(), Some(1.0));
        let app = &reading.upstreams["app"];
        assert_eq!(app.breaker, Some(Breaker::Open));
        assert_eq!(app.failures.keys().collect::<Vec<_>>(), ["connect_refused"]);
        assert_eq!(app.targets.len(), 2);
        let limit = reading.limits["max-in-flight-requests"];
        assert_eq!((limit.current, limit.maximum), (Some(3.0), Some(4.0)));
        assert_eq!(
            reading.limits["max-requests-per-second-global"].maximum,
            None
        );
        let agents: Vec<_> = reading.agents.keys().collect();
        assert_eq!(agents, [&("waf".to_owned(), "request-headers".to_owned())]);
    }
}
