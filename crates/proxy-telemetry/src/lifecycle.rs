//! The state of the process: start, configuration, and readiness for traffic.

mod certificates;
mod key_sets;
mod time;

pub use certificates::{ObtainedCertificate, ObtainingFailure};
pub use key_sets::FetchedKeySet;
pub use time::timestamp;

use crate::exposition::{Build, Format, MetricPoints, Scrape};
use crate::metrics::Gauge;
use crate::names;
use crate::process::Process;
use crate::registry::Registry;
use crate::scrape::snapshot::Snapshot;
use certificates::Certificates;
use key_sets::KeySets;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::{rfc3339, unix_millis};

/// The state of the process, written by the control thread and read by any thread.
#[derive(Debug)]
pub struct Lifecycle {
    version: &'static str,
    commit: &'static str,
    registry: Arc<Registry>,
    started: SystemTime,
    uptime_clock: UptimeClock,
    /// The reading of `uptime_clock` at the start.
    started_at: Duration,
    /// Number of successful reloads.
    reloads: AtomicU64,
    /// Time at which the current configuration was read, in milliseconds since 1970.
    last_reload: AtomicU64,
    /// One of [`UNTRIED`], [`SUCCEEDED`] and [`FAILED`].
    last_result: AtomicU8,
    generation: AtomicU64,
    generation_gauge: Arc<Gauge>,
    last_reload_gauge: Arc<Gauge>,
    listening: AtomicBool,
    draining: AtomicBool,
    silent_workers: AtomicUsize,
    certificates: Certificates,
    key_sets: KeySets,
}

/// A clock that is never set, for the uptime: the time since the boot of the host, also while it
/// was suspended.
pub type UptimeClock = fn() -> Duration;

/// No reload was attempted yet.
const UNTRIED: u8 = 0;
/// The last reload succeeded.
const SUCCEEDED: u8 = 1;
/// The last reload was refused.
const FAILED: u8 = 2;

impl Lifecycle {
    /// A process that started at `started`, by the time of day, and does not listen yet.
    #[must_use]
    pub fn new(
        version: &'static str,
        commit: &'static str,
        registry: Arc<Registry>,
        started: SystemTime,
        uptime_clock: UptimeClock,
    ) -> Self {
        let generation_gauge = registry.gauge(&names::CONFIG_GENERATION, []);
        let last_reload_gauge = registry.gauge(&names::CONFIG_LAST_RELOAD_TIMESTAMP_SECONDS, []);
        last_reload_gauge.set(unix_millis(started) / 1000);
        Self {
            version,
            commit,
            registry,
            started,
            uptime_clock,
            started_at: uptime_clock(),
            reloads: AtomicU64::new(0),
            last_reload: AtomicU64::new(unix_millis(started)),
            last_result: AtomicU8::new(UNTRIED),
            generation: AtomicU64::new(0),
            generation_gauge,
            last_reload_gauge,
            listening: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            silent_workers: AtomicUsize::new(0),
            certificates: Certificates::default(),
            key_sets: KeySets::default(),
        }
    }

    /// Records that the plan of this generation is active and every listener is bound.
    pub fn serves(&self, generation: u64) {
        self.generation.store(generation, Ordering::Release);
        self.generation_gauge.set(generation);
        self.listening.store(true, Ordering::Release);
    }

    /// Records a reload attempted at `now`. A failed one changes only the last result.
    pub fn reloaded(&self, now: SystemTime, succeeded: bool) {
        let result = if succeeded { SUCCEEDED } else { FAILED };
        self.last_result.store(result, Ordering::Relaxed);
        if succeeded {
            let now = unix_millis(now);
            self.reloads.fetch_add(1, Ordering::Relaxed);
            self.last_reload.store(now, Ordering::Relaxed);
            self.last_reload_gauge.set(now / 1000);
        }
    }

    /// Records that no new connections are accepted.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Sets the number of workers that do not respond; their share of new connections waits.
    pub fn set_silent_workers(&self, count: usize) {
        self.silent_workers.store(count, Ordering::Release);
    }

    /// Sets the state of the certificate in `file`, which the process obtains itself.
    pub fn set_certificate(&self, file: &str, certificate: &ObtainedCertificate) {
        self.certificates.set(file, certificate);
    }

    /// Removes the certificates of files for which `is_kept` returns false.
    pub fn retain_certificates(&self, is_kept: impl Fn(&str) -> bool) {
        self.certificates.retain(is_kept);
    }

    /// Sets the state of the key set of an issuer of tokens, by its upstream and URL.
    pub fn set_key_set(&self, upstream: &str, url: &str, state: &FetchedKeySet) {
        self.key_sets.set(upstream, url, state);
    }

    /// Removes the key sets for which `is_kept` returns false.
    pub fn retain_key_sets(&self, is_kept: impl Fn(&str, &str) -> bool) {
        self.key_sets.retain(is_kept);
    }

    /// Returns true if the process is draining.
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
    pub fn status(&self) -> Value {
        let result = match self.last_result.load(Ordering::Relaxed) {
            SUCCEEDED => json!("success"),
            FAILED => json!("failure"),
            _ => Value::Null,
        };
        let mut status = json!({
            "status": "healthy",
            "version": self.version,
            "uptime_seconds": self.uptime().as_secs(),
            "start_time": timestamp(self.started),
            "config_reload_count": self.reloads.load(Ordering::Relaxed),
            "last_config_reload": rfc3339(self.last_reload.load(Ordering::Relaxed)),
            "last_config_reload_result": result,
            "config_generation": self.generation.load(Ordering::Acquire),
            "draining": self.is_draining(),
        });
        if let Some((document, certificates)) =
            status.as_object_mut().zip(self.certificates.document())
        {
            document.insert("certificates".to_owned(), certificates);
        }
        if let Some((document, key_sets)) = status.as_object_mut().zip(self.key_sets.document()) {
            document.insert("key_sets".to_owned(), key_sets);
        }
        status
    }

    /// Readiness of the process, with the body of `/ready`.
    #[must_use]
    pub fn readiness(&self) -> (bool, Value) {
        let mut reasons = Vec::new();
        if !self.listening.load(Ordering::Acquire) {
            reasons.push("listeners are not bound yet");
        }
        if self.is_draining() {
            reasons.push("draining");
        }
        if self.silent_workers.load(Ordering::Acquire) > 0 {
            reasons.push("a worker does not respond");
        }
        if reasons.is_empty() {
            let warnings = self.certificates.warnings();
            if warnings.is_empty() {
                return (true, json!({"status": "ready"}));
            }
            return (true, json!({"status": "ready", "warnings": warnings}));
        }
        (false, json!({"status": "not_ready", "reasons": reasons}))
    }

    /// Renders all metrics in `format`.
    #[must_use]
    pub fn metrics(&self, format: Format) -> String {
        let (snapshot, process) = (self.registry.snapshot(), Process::read());
        self.scrape(&snapshot, &process).page(format)
    }

    /// All metrics with samples, as on the page.
    #[must_use]
    pub fn points(&self) -> Vec<MetricPoints> {
        let (snapshot, process) = (self.registry.snapshot(), Process::read());
        self.scrape(&snapshot, &process).points()
    }

    /// The metrics of the process.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Start of the process.
    #[must_use]
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// The program's version.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// Time since the start. Steps of the time of day have no effect.
    fn uptime(&self) -> Duration {
        (self.uptime_clock)().saturating_sub(self.started_at)
    }

    fn scrape<'s>(&self, snapshot: &'s Snapshot, process: &'s Process) -> Scrape<'s> {
        Scrape {
            snapshot,
            process,
            build: Build {
                version: self.version,
                commit: self.commit,
            },
            started: self.started.duration_since(UNIX_EPOCH).unwrap_or_default(),
            uptime: self.uptime(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::RegistrySettings;
    use std::cell::Cell;

    thread_local! {
        /// Seconds of the clock for the uptime.
        static UPTIME_SECS: Cell<u64> = const { Cell::new(1_000) };
    }

    fn uptime() -> Duration {
        Duration::from_secs(UPTIME_SECS.get())
    }

    fn lifecycle() -> Lifecycle {
        let settings = RegistrySettings {
            reasons: &[],
            max_series: 10,
        };
        let registry = Arc::new(Registry::new(settings));
        Lifecycle::new("1.2.3", "abc", registry, UNIX_EPOCH, uptime)
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
    fn a_process_with_a_worker_that_hangs_is_not_ready() {
        let lifecycle = lifecycle();
        lifecycle.serves(1);

        lifecycle.set_silent_workers(1);
        let (ready, body) = lifecycle.readiness();
        assert!(!ready);
        assert_eq!(body["reasons"], json!(["a worker does not respond"]));

        lifecycle.set_silent_workers(0);
        assert!(lifecycle.readiness().0);
    }

    #[test]
    fn the_status_counts_reloads_and_says_how_the_last_one_went() {
        let lifecycle = lifecycle();
        lifecycle.serves(1);
        let untried = lifecycle.status();
        assert_eq!(untried["last_config_reload_result"], Value::Null);
        let later = UNIX_EPOCH + Duration::from_millis(90_500);
        lifecycle.reloaded(later, true);
        lifecycle.reloaded(later + Duration::from_secs(1), false);

        UPTIME_SECS.set(1_007);
        let status = lifecycle.status();
        // The time of day was set forward meanwhile.
        assert_eq!(status["uptime_seconds"], 7);
        assert_eq!(status["start_time"], "1970-01-01T00:00:00.000Z");
        assert_eq!(status["last_config_reload"], "1970-01-01T00:01:30.500Z");
        assert_eq!(status["config_reload_count"], 1);
        assert_eq!(status["last_config_reload_result"], "failure");
    }
}
