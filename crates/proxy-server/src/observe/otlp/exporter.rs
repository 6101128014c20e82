//! Requests to the collector, with retries, counters and log lines.

use proxy_otlp::{Backoff, Collector, ExportResult, Resource, Signal};
use proxy_pipeline::random_key;
use proxy_telemetry::{Registry, names};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Spans of one request to the collector, up to 2 MiB.
pub(crate) const BATCH_SPANS: usize = 512;

/// Settings of a task that exports; a reload may change them while it runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExportSettings {
    pub(super) collector: Collector,
    pub(super) resource: Arc<Resource>,
    /// Time between two exports of metrics.
    pub(super) interval: Duration,
    /// The process ends: remaining data is sent once, then the task ends.
    pub(super) is_flushing: bool,
}

/// Exports one signal.
pub(super) struct Exporter {
    signal: Signal,
    registry: Arc<Registry>,
    /// The cause of the last failure, since the last success.
    failure: Option<String>,
    /// The collector's message with its last partial success.
    rejection: Option<String>,
}

/// The cause of lost data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// All retries failed.
    Unavailable,
    /// The collector refused the request.
    Refused,
}

impl Dropped {
    /// Value of the metric label.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
        }
    }
}

impl Exporter {
    pub(super) fn new(signal: Signal, registry: Arc<Registry>) -> Self {
        Self {
            signal,
            registry,
            failure: None,
            rejection: None,
        }
    }

    /// Sends `body`, with retries after failures that permit them, always by the current settings.
    /// Returns the number of rejected spans or points.
    pub(super) async fn export(
        &mut self,
        body: Vec<u8>,
        settings: &mut watch::Receiver<ExportSettings>,
    ) -> Result<u64, Dropped> {
        let body = bytes::Bytes::from(body);
        let mut backoff = Backoff::default();
        loop {
            let current = settings.borrow_and_update().clone();
            let result = current.collector.export(self.signal, body.clone()).await;
            match result {
                ExportResult::Accepted { rejected, message } => {
                    self.succeeded(rejected, &message);
                    return Ok(rejected);
                }
                ExportResult::Refused { cause } => {
                    self.failed(cause);
                    return Err(Dropped::Refused);
                }
                ExportResult::Unavailable { retry_after, cause } => {
                    self.failed(cause);
                    let pause = backoff.next_pause(retry_after, random());
                    let pause = pause.filter(|_| !current.is_flushing);
                    if !wait(pause, settings).await {
                        return Err(Dropped::Unavailable);
                    }
                }
            }
        }
    }

    fn succeeded(&mut self, rejected: u64, message: &str) {
        self.count("success");
        let signal = self.signal.name();
        if self.failure.take().is_some() {
            tracing::info!(signal, "the collector accepts data again");
        }
        self.report_rejection(rejected, message);
    }

    /// Logs a partial success once, until the collector sends another message or accepts
    /// everything.
    fn report_rejection(&mut self, rejected: u64, message: &str) {
        if rejected == 0 && message.is_empty() {
            self.rejection = None;
            return;
        }
        if self.rejection.as_deref() != Some(message) {
            let signal = self.signal.name();
            tracing::warn!(
                signal,
                rejected,
                error = message,
                "the collector rejected a part of the data"
            );
        }
        self.rejection = Some(message.to_owned());
    }

    /// Logs a cause once, until it changes.
    fn failed(&mut self, cause: String) {
        self.count("failure");
        if self.failure.as_ref() != Some(&cause) {
            let signal = self.signal.name();
            tracing::warn!(signal, error = cause, "the collector did not accept data");
        }
        self.failure = Some(cause);
    }

    fn count(&self, result: &str) {
        let labels = [self.signal.name(), result];
        let counter = self.registry.counter(&names::OTLP_EXPORTS_TOTAL, labels);
        counter.add(1);
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }
}

/// Waits for a retry, or for new settings. Returns false if no retry is left.
async fn wait(pause: Option<Duration>, settings: &mut watch::Receiver<ExportSettings>) -> bool {
    let Some(pause) = pause else {
        return false;
    };
    tokio::select! {
        () = tokio::time::sleep(pause) => true,
        changed = settings.changed() => changed.is_ok(),
    }
}

/// A random number for the lengths of pauses; 0 if the system has no randomness.
fn random() -> u64 {
    random_key().map(u64::from_ne_bytes).unwrap_or_default()
}
