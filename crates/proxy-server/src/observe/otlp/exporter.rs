//! Requests to the collector with their repetitions, counts and log.

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
    /// True if the process ends: data that is left is sent once, and the task ends.
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
    /// After all repetitions.
    Unavailable,
    /// The collector refused it.
    Refused,
}

impl Dropped {
    /// The word in labels.
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

    /// Sends `body`, again after failures that permit it, always by the current settings. Returns the number of
    /// rejected spans or points.
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

    /// Logs a partial success once, until the collector's message is another one or all is accepted.
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

    /// Logs a cause once, until there is another one.
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

    /// The metrics of the process.
    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }
}

/// Waits for a repetition, or for other settings. Returns false if there is no repetition.
async fn wait(pause: Option<Duration>, settings: &mut watch::Receiver<ExportSettings>) -> bool {
    let Some(pause) = pause else {
        return false;
    };
    tokio::select! {
        () = tokio::time::sleep(pause) => true,
        changed = settings.changed() => changed.is_ok(),
    }
}

/// A random number; without one, pauses are of equal length.
fn random() -> u64 {
    random_key().map(u64::from_ne_bytes).unwrap_or_default()
}
