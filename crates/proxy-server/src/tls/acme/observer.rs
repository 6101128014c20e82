//! Logs, metrics and status of one certificate.

use proxy_acme::Event;
use proxy_telemetry::{
    Gauge, Lifecycle, ObtainedCertificate, ObtainingFailure, Registry, names, timestamp,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Logs, metrics and status of one certificate.
#[derive(Debug)]
pub(super) struct Observer {
    /// Label of the certificate's metrics.
    file: String,
    state: ObtainedCertificate,
    registry: Arc<Registry>,
    lifecycle: Arc<Lifecycle>,
    /// Made with the first event.
    gauges: Option<Gauges>,
}

#[derive(Debug)]
struct Gauges {
    failures: Arc<Gauge>,
    last_failure: Arc<Gauge>,
    next_attempt: Arc<Gauge>,
}

impl Observer {
    /// An observer of the certificate in `file`, before its first event.
    pub(super) fn new(
        file: &Path,
        hosts: Vec<String>,
        registry: Arc<Registry>,
        lifecycle: Arc<Lifecycle>,
    ) -> Self {
        Self {
            file: shown(file),
            state: ObtainedCertificate {
                hosts,
                ..ObtainedCertificate::default()
            },
            registry,
            lifecycle,
            gauges: None,
        }
    }

    pub(super) fn observe(&mut self, event: &Event<'_>, now: SystemTime) {
        let hosts = self.state.hosts.join(" ");
        match event {
            Event::Stored {
                not_after,
                renew_at,
            } => self.valid(*not_after, *renew_at),
            Event::Obtained {
                not_after,
                renew_at,
            } => {
                self.valid(*not_after, *renew_at);
                self.count("success");
                log_obtained(&hosts, *not_after, *renew_at);
            }
            Event::Damaged { file, why } => {
                self.state.not_after = None;
                log_damaged(&hosts, file, why);
            }
            Event::Ordering => {
                self.state.next_attempt = None;
                tracing::info!(hosts, "a certificate is ordered");
            }
            Event::Failed {
                settings,
                error,
                failures,
                retry_at,
                not_after,
            } => {
                let failure = ObtainingFailure {
                    at: now,
                    failures: *failures,
                    problem: error.kind().to_owned(),
                    detail: error.to_string(),
                    advice: error.advice(settings),
                };
                log_failure(&hosts, &failure, *retry_at, *not_after);
                self.state.failure = Some(failure);
                self.state.not_after = *not_after;
                self.state.next_attempt = Some(*retry_at);
                self.count("failure");
            }
        }
        self.publish();
    }

    fn valid(&mut self, not_after: SystemTime, renew_at: SystemTime) {
        self.state.not_after = Some(not_after);
        self.state.next_attempt = Some(renew_at);
        self.state.failure = None;
    }

    fn count(&self, result: &str) {
        let orders = &names::ACME_ORDERS_TOTAL;
        let counter = self.registry.counter(orders, [&self.file, result]);
        counter.add(1);
    }

    fn publish(&mut self) {
        let Self {
            file,
            state,
            registry,
            lifecycle,
            gauges,
        } = self;
        lifecycle.set_certificate(file, state);
        let gauges = gauges.get_or_insert_with(|| Gauges {
            failures: registry.gauge(&names::ACME_CONSECUTIVE_FAILURES, [file]),
            last_failure: registry.gauge(&names::ACME_LAST_FAILURE_TIMESTAMP_SECONDS, [file]),
            next_attempt: registry.gauge(&names::ACME_NEXT_ATTEMPT_TIMESTAMP_SECONDS, [file]),
        });
        let seconds = |time: SystemTime| {
            let since = time.duration_since(UNIX_EPOCH);
            since.unwrap_or_default().as_secs()
        };
        let failures = state.failure.as_ref().map_or(0, |failure| failure.failures);
        gauges.failures.set(failures.into());
        if let Some(failure) = &state.failure {
            gauges.last_failure.set(seconds(failure.at));
        }
        if let Some(next) = state.next_attempt {
            gauges.next_attempt.set(seconds(next));
        }
    }
}

/// The name of a certificate in metrics and in `/status`.
pub(super) fn shown(file: &Path) -> String {
    file.display().to_string()
}

/// Logs that a stored certificate was renamed to `file`, because it cannot be used.
pub(super) fn log_damaged(hosts: &str, file: &Path, why: &str) {
    let file = shown(file);
    tracing::error!(
        hosts,
        file,
        why,
        "a stored certificate is damaged; it was renamed, and another one is ordered"
    );
}

fn log_obtained(hosts: &str, not_after: SystemTime, renew_at: SystemTime) {
    let (not_after, renew_at) = (timestamp(not_after), timestamp(renew_at));
    tracing::info!(hosts, not_after, renew_at, "a certificate was obtained");
}

fn log_failure(
    hosts: &str,
    failure: &ObtainingFailure,
    retry_at: SystemTime,
    not_after: Option<SystemTime>,
) {
    let ObtainingFailure {
        at: _,
        failures,
        problem,
        detail,
        advice,
    } = failure;
    let retry_at = timestamp(retry_at);
    let stored_until = not_after.map_or_else(|| "none".to_owned(), timestamp);
    tracing::error!(
        hosts,
        problem,
        detail,
        advice,
        failures,
        retry_at,
        stored_until,
        "a certificate could not be obtained"
    );
}
