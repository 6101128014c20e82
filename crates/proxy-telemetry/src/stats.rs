//! The document of `/admin/stats`.

use crate::limit_use::{LimitUse, Quantity};
use crate::metrics::{HistogramTotal, RouteTotal};
use crate::scrape::snapshot::Snapshot;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The use of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Resident memory, in bytes; `None` where the system does not report it.
    pub rss_bytes: Option<u64>,
    /// Configured maximum, in bytes; `None` if unlimited.
    pub limit_bytes: Option<u64>,
    /// True if connections are refused for lack of memory.
    pub shedding: bool,
}

impl Snapshot {
    /// The document of `/admin/stats`: totals, the same by status class, route and reason, and the
    /// use of limits and `memory`.
    pub fn stats(&self, memory: MemoryUse) -> Value {
        let MemoryUse {
            rss_bytes,
            limit_bytes,
            shedding,
        } = memory;
        json!({
            "requests_total": self.requests(),
            "requests_in_flight": self.workers.requests_in_flight,
            "requests_of_former_configurations": self.workers.requests_of_former_configurations,
            "connections_active": self.workers.connections_active,
            "connections_idle": self.workers.connections_idle,
            "by_status": by_class(self.routes.iter().map(|(_, total)| total)),
            "by_route": object(self.routes.iter().map(|(id, total)| (id, route(total)))),
            "by_reason": self.failures(),
            "limits": object(self.limits.iter().map(|used| (used.setting.name(), self.limit(used)))),
            "memory": {
                "rss_bytes": rss_bytes,
                "limit_bytes": limit_bytes,
                "shedding": shedding,
            },
        })
    }

    fn limit(&self, used: &LimitUse) -> Value {
        let LimitUse {
            setting,
            current,
            maximum,
        } = *used;
        json!({
            "current": current.map(Quantity::json),
            "limit": maximum.map(Quantity::json),
            "rejected": self.workers.rejected(setting),
        })
    }

    fn failures(&self) -> BTreeMap<&'static str, u64> {
        let words = self.reasons.iter().copied().chain(["other"]);
        let counts = words.zip(self.workers.failures.iter().copied());
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

fn by_class<'a>(routes: impl Iterator<Item = &'a RouteTotal>) -> BTreeMap<String, u64> {
    let mut classes = BTreeMap::new();
    for total in routes {
        for (status, count) in total.by_status() {
            *classes.entry(format!("{}xx", status / 100)).or_default() += count;
        }
        if total.other_statuses() > 0 {
            *classes.entry("other".to_owned()).or_default() += total.other_statuses();
        }
    }
    classes
}

fn route(total: &RouteTotal) -> Value {
    json!({
        "requests": total.requests(),
        "errors": total.failed,
        "latency_ms": {
            "p50": millis(&total.duration, 500),
            "p95": millis(&total.duration, 950),
            "p99": millis(&total.duration, 990),
        },
    })
}

/// A quantile in milliseconds, to the microsecond; null without a recorded duration.
fn millis(histogram: &HistogramTotal, permille: u16) -> Option<f64> {
    let time = histogram.quantile(permille)?;
    Some((time.as_secs_f64() * 1e6).round() / 1e3)
}

fn object(members: impl Iterator<Item = (impl AsRef<str>, Value)>) -> Map<String, Value> {
    members
        .map(|(name, value)| (name.as_ref().to_owned(), value))
        .collect()
}
