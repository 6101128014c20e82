//! Watches the memory of the process: sheds load above the limit, and logs it.

use crate::observe::logs::OpenLogs;
use crate::runtime::system_memory;
use proxy_limits::{MemoryChange, MemoryLimit, MemoryLimitSettings};
use proxy_model::{Limits, LogLevel};
use proxy_telemetry::{EventFields, Gauge, Registry, names, resident_memory_bytes};
use std::sync::Arc;
use std::time::Duration;

/// Time between readings of the memory in use.
const INTERVAL: Duration = Duration::from_millis(100);

/// Time between readings while more than half of the limit is in use.
const SHORT_INTERVAL: Duration = Duration::from_millis(10);

/// The memory limit used by workers, and its metrics.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    limit: Arc<MemoryLimit>,
    limit_bytes: Arc<Gauge>,
    shedding: Arc<Gauge>,
}

impl MemoryWatch {
    pub(crate) fn new(limit: Arc<MemoryLimit>, registry: &Registry) -> Self {
        limit.read_on_growth(resident_memory_bytes);
        Self {
            limit,
            limit_bytes: registry.gauge(&names::MEMORY_LIMIT_BYTES, []),
            shedding: registry.gauge(&names::MEMORY_SHEDDING, []),
        }
    }

    /// Applies `limits` from now on.
    pub(crate) fn apply(&self, limits: &Limits) -> MemoryChange {
        let total_bytes = system_memory::total_bytes().unwrap_or(u64::MAX);
        let change = self.limit.apply(settings(limits), total_bytes);
        self.limit_bytes.set(self.limit.max_bytes().unwrap_or(0));
        self.show();
        change
    }

    /// Reads how much memory is in use, if there is a limit.
    pub(crate) fn check(&self) -> MemoryChange {
        if self.limit.max_bytes().is_none() {
            return MemoryChange::Unchanged;
        }
        let Some(used_bytes) = resident_memory_bytes() else {
            return MemoryChange::Unchanged;
        };
        let change = self.limit.observe(used_bytes);
        self.show();
        change
    }

    /// Time until the next reading.
    pub(crate) fn interval(&self) -> Duration {
        let half = self.limit.max_bytes().map(|max| max / 2);
        match half {
            Some(half) if half < self.limit.used_bytes() => SHORT_INTERVAL,
            Some(_) | None => INTERVAL,
        }
    }

    fn show(&self) {
        self.shedding.set(u64::from(self.limit.is_shedding()));
    }
}

pub(crate) fn settings(limits: &Limits) -> MemoryLimitSettings {
    MemoryLimitSettings {
        max_bytes: limits.max_memory_bytes.map(|max| *max),
        max_percent: limits.max_memory_percent.map(|max| *max),
    }
}

/// Logs, in the events and in the error log, when the process begins or stops shedding load.
pub(crate) fn log_change(change: MemoryChange, logs: &mut OpenLogs) {
    const SHEDDING: &str = "memory limit exceeded: new connections are refused";
    const RECOVERED: &str = "memory is below its limit again: connections are taken";
    let mut fields = EventFields::default();
    let (level, message) = match change {
        MemoryChange::Unchanged => return,
        MemoryChange::SheddingBegan {
            used_bytes,
            max_bytes,
        } => {
            tracing::error!(used_bytes, max_bytes, "{SHEDDING}");
            fields.plain("used_bytes", used_bytes);
            fields.plain("max_bytes", max_bytes);
            (LogLevel::Error, SHEDDING)
        }
        MemoryChange::Recovered {
            used_bytes,
            max_bytes: _,
        } => {
            tracing::warn!(used_bytes, "{RECOVERED}");
            fields.plain("used_bytes", used_bytes);
            (LogLevel::Warn, RECOVERED)
        }
    };
    logs.log_event(level, message, &fields);
}
