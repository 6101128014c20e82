//! What the process says of itself: since when, under which configuration, and whether it takes
//! traffic.

use crate::exposition::{Build, Format, Scrape};
use crate::process::Process;
use crate::registry::Registry;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The process's life, written by the control thread and read by everybody.
#[derive(Debug)]
pub struct Lifecycle {
    version: &'static str,
    commit: &'static str,
    registry: Arc<Registry>,
    started: SystemTime,
    reloads: AtomicU64,
    // Milliseconds since 1970; 0 before the first.
    last_reload: AtomicU64,
    last_reload_failed: AtomicBool,
    generation: AtomicU64,
    listening: AtomicBool,
    draining: AtomicBool,
}

impl Lifecycle {
    /// A process that started at `started` and does not listen yet.
    #[must_use]
    pub fn new(
        (version, commit): (&'static str, &'static str),
        registry: Arc<Registry>,
        started: SystemTime,
    ) -> Self {
        Self {
            version,
            commit,
            registry,
            started,
            reloads: AtomicU64::new(0),
            last_reload: AtomicU64::new(0),
            last_reload_failed: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            listening: AtomicBool::new(false),
            draining: AtomicBool::new(false),
        }
    }

    /// The plan of this generation is in force and every listener is bound.
    pub fn serves(&self, generation: u64) {
        self.generation.store(generation, Ordering::Release);
        self.listening.store(true, Ordering::Release);
    }

    /// A reload was tried at `now`.
    pub fn reloaded(&self, now: SystemTime, succeeded: bool) {
        self.reloads.fetch_add(1, Ordering::Relaxed);
        self.last_reload.store(unix_millis(now), Ordering::Relaxed);
        self.last_reload_failed.store(!succeeded, Ordering::Relaxed);
    }

    /// No new connections are accepted any more.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether the process is on its way out.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// The body of `/health`.
    #[must_use]
    pub fn health(&self) -> Value {
        json!({"status": "healthy"})
    }

    /// The body of `/status`.
    #[must_use]
    pub fn status(&self, now: SystemTime) -> Value {
        let uptime = now.duration_since(self.started).unwrap_or_default();
        let last_reload = self.last_reload.load(Ordering::Relaxed);
        let reloaded = last_reload > 0;
        let started = unix_millis(self.started);
        let result = match (reloaded, self.last_reload_failed.load(Ordering::Relaxed)) {
            (false, _) => Value::Null,
            (true, false) => json!("success"),
            (true, true) => json!("failure"),
        };
        json!({
            "status": "healthy",
            "version": self.version,
            "uptime_seconds": uptime.as_secs(),
            "start_time": rfc3339(started),
            "config_reload_count": self.reloads.load(Ordering::Relaxed),
            // Before the first reload: when the configuration in force was read.
            "last_config_reload": rfc3339(if reloaded { last_reload } else { started }),
            "last_config_reload_result": result,
            "config_generation": self.generation.load(Ordering::Acquire),
            "draining": self.is_draining(),
        })
    }

    /// Whether the process takes traffic, and the body of `/ready`.
    #[must_use]
    pub fn readiness(&self) -> (bool, Value) {
        let mut reasons = Vec::new();
        if !self.listening.load(Ordering::Acquire) {
            reasons.push("listeners are not bound yet");
        }
        if self.is_draining() {
            reasons.push("draining");
        }
        if reasons.is_empty() {
            return (true, json!({"status": "ready"}));
        }
        (false, json!({"status": "not_ready", "reasons": reasons}))
    }

    /// The page that a scraper reads.
    #[must_use]
    pub fn metrics(&self, format: Format, now: SystemTime) -> String {
        let since_epoch = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let scrape = Scrape {
            snapshot: &self.registry.snapshot(),
            process: &Process::read(),
            build: Build {
                version: self.version,
                commit: self.commit,
            },
            now: since_epoch(now),
            started: since_epoch(self.started),
        };
        scrape.page(format)
    }
}

/// A time as RFC 3339 in UTC, with milliseconds.
#[must_use]
pub fn timestamp(time: SystemTime) -> String {
    rfc3339(unix_millis(time))
}

fn unix_millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn rfc3339(unix_millis: u64) -> String {
    let millis = i64::try_from(unix_millis).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::RegistrySettings;

    fn lifecycle() -> Lifecycle {
        let settings = RegistrySettings {
            reasons: &[],
            max_series: 10,
        };
        let registry = Arc::new(Registry::new(settings));
        Lifecycle::new(("1.2.3", "abc"), registry, UNIX_EPOCH)
    }

    #[test]
    fn a_process_is_ready_from_its_first_plan_until_it_drains() {
        let lifecycle = lifecycle();
        assert!(!lifecycle.readiness().0);

        lifecycle.serves(1);
        assert_eq!(lifecycle.readiness(), (true, json!({"status": "ready"})));

        lifecycle.drain();
        let (ready, body) = lifecycle.readiness();
        assert!(!ready);
        assert_eq!(body["reasons"], json!(["draining"]));
    }

    #[test]
    fn the_status_counts_reloads_and_says_how_the_last_one_went() {
        let lifecycle = lifecycle();
        lifecycle.serves(1);
        let later = UNIX_EPOCH + Duration::from_millis(90_500);
        lifecycle.reloaded(later, false);

        let status = lifecycle.status(later);
        assert_eq!(status["uptime_seconds"], 90);
        assert_eq!(status["start_time"], "1970-01-01T00:00:00.000Z");
        assert_eq!(status["last_config_reload"], "1970-01-01T00:01:30.500Z");
        assert_eq!(status["config_reload_count"], 1);
        assert_eq!(status["last_config_reload_result"], "failure");
    }
}
