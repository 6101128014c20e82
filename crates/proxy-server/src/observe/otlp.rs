//! Export of spans and metrics to a collector, in the background.

mod exporter;
mod metrics;
mod spans;

use crate::error::apply_error::ApplyError;
use crate::runtime::disk_thread::DiskThread;
use crate::runtime::system_clock;
use crate::runtime::task_scope::{TaskContext, TaskScope, TaskTransaction};
use exporter::{ExportSettings, Exporter};
use proxy_config::{Diagnostic, DiagnosticCode};
use proxy_limits::KeySeed;
use proxy_model::{Model, Otlp, OtlpCompression, Setting};
use proxy_otlp::{Collector, CollectorError, CollectorSettings, Resource, Signal};
use proxy_pipeline::{IdSource, Shared};
use proxy_telemetry::{Lifecycle, SpanQueue, names};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use exporter::BATCH_SPANS;

/// The exporters of the process: one task for spans and one for metrics. Spans stay in their queue
/// while a reload changes the collector.
#[derive(Debug)]
pub(crate) struct Exporters {
    tasks: TaskScope<Signal, ExportSettings>,
    /// The active settings.
    settings: Option<(Otlp, ExportSettings)>,
    lifecycle: Arc<Lifecycle>,
    spans: Arc<SpanQueue>,
    instance_id: String,
    /// False in a rehearsal, which exports nothing.
    is_serving: bool,
    /// End of the time to drain, in nanoseconds of the process's clock; `None` until the drain
    /// begins.
    drain_end_ns: Option<u64>,
}

/// Time for the last export after a drain that used all of its time.
const LAST_EXPORT_TIME: Duration = Duration::from_secs(2);

/// The collector of `model`, with its roots read; `None` without export. A slow disk blocks only
/// the disk thread.
pub(crate) async fn open_collector(
    disk: &DiskThread,
    model: &Model,
) -> Result<Option<Collector>, ApplyError> {
    let Some(otlp) = model.observability.otlp.clone() else {
        return Ok(None);
    };
    let settings = collector_settings(&otlp);
    let opened = disk.run(move || Collector::new(settings)).await;
    let opened = opened.map_err(ApplyError::Disk)?;
    let collector = opened.map_err(|error| ApplyError::Tls(vec![fault(&otlp, &error)]))?;
    Ok(Some(collector))
}

impl Exporters {
    /// An exporter without tasks. `ids` creates `service.instance.id`.
    pub(crate) fn new(is_serving: bool, shared: &Shared, ids: &IdSource) -> Self {
        Self {
            tasks: TaskScope::new(system_clock::now),
            settings: None,
            lifecycle: Arc::clone(&shared.lifecycle),
            spans: Arc::clone(&shared.spans),
            instance_id: uuid(ids.key_seed()),
            is_serving,
            drain_end_ns: None,
        }
    }

    /// Exports by the settings of `model` from now on. Running tasks keep their data.
    pub(crate) fn apply(&mut self, model: &Model, collector: Option<Collector>) {
        let otlp = model.observability.otlp.as_ref();
        let otlp = otlp.filter(|_| self.is_serving);
        let traces = otlp.filter(|otlp| *otlp.traces);
        let capacity = traces.map_or(0, |otlp| *otlp.queue_spans);
        self.spans
            .set_capacity(usize::try_from(capacity).unwrap_or(usize::MAX));
        if traces.is_none() {
            self.lifecycle.registry().clear_exemplars();
            drop(self.spans.take(usize::MAX));
        }
        self.settings = otlp.zip(collector).map(|(otlp, collector)| {
            let settings = ExportSettings {
                collector,
                resource: Arc::new(self.resource(otlp)),
                interval: *otlp.interval,
                is_flushing: false,
            };
            (otlp.clone(), settings)
        });
        if let Some((otlp, settings)) = self.settings.clone() {
            self.show_counters(&otlp);
            self.commit(&otlp, &settings);
        } else {
            self.tasks.commit(self.tasks.begin());
        }
    }

    /// Records the time that a drain has from `now_ns` on.
    pub(crate) fn begin_drain(&mut self, now_ns: u64, time: Duration) {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.drain_end_ns = Some(now_ns.saturating_add(time_ns));
    }

    /// Exports the remaining data in the remaining time of the drain. Without a drain, the data is
    /// dropped.
    pub(crate) async fn flush(&mut self, now_ns: u64) {
        let (Some((otlp, mut settings)), Some(end_ns)) = (self.settings.take(), self.drain_end_ns)
        else {
            return;
        };
        let left = Duration::from_nanos(end_ns.saturating_sub(now_ns));
        settings.is_flushing = true;
        self.commit(&otlp, &settings);
        let time = left.max(LAST_EXPORT_TIME).min(*otlp.timeout);
        let flushed = tokio::time::timeout(time, self.tasks.join()).await;
        let lost = self.spans.len();
        if flushed.is_err() || lost > 0 {
            let endpoint = &*otlp.endpoint;
            tracing::warn!(%endpoint, spans = lost, "data was not exported before the exit");
        }
    }

    fn commit(&mut self, otlp: &Otlp, settings: &ExportSettings) {
        let mut tasks = self.tasks.begin();
        if *otlp.traces {
            let (exporter, spans) = (self.exporter(Signal::Traces), Arc::clone(&self.spans));
            add(&mut tasks, Signal::Traces, settings, |context| {
                spans::run(context, exporter, spans)
            });
        }
        if *otlp.metrics {
            let exporter = self.exporter(Signal::Metrics);
            let lifecycle = Arc::clone(&self.lifecycle);
            add(&mut tasks, Signal::Metrics, settings, |context| {
                metrics::run(context, exporter, lifecycle)
            });
        }
        self.tasks.commit(tasks);
    }

    fn exporter(&self, signal: Signal) -> Exporter {
        Exporter::new(signal, Arc::clone(self.lifecycle.registry()))
    }

    /// Creates every series at the start, so that an alert can compare them.
    fn show_counters(&self, otlp: &Otlp) {
        let (registry, spans) = (self.lifecycle.registry(), &self.spans);
        if *otlp.traces {
            let dropped = &names::OTLP_SPANS_DROPPED_TOTAL;
            registry.show(dropped, ["queue_full"], spans.dropped());
            for reason in ["unavailable", "refused"] {
                registry.counter(dropped, [reason]).add(0);
            }
            registry
                .counter(&names::OTLP_SPANS_EXPORTED_TOTAL, [])
                .add(0);
        }
        let signals = [
            (Signal::Traces, *otlp.traces),
            (Signal::Metrics, *otlp.metrics),
        ];
        for (signal, _) in signals.into_iter().filter(|(_, is_on)| *is_on) {
            for result in ["success", "failure"] {
                let labels = [signal.name(), result];
                registry.counter(&names::OTLP_EXPORTS_TOTAL, labels).add(0);
            }
        }
    }

    fn resource(&self, otlp: &Otlp) -> Resource {
        Resource {
            service_name: otlp.service_name.value.clone(),
            service_version: self.lifecycle.version().to_owned(),
            instance_id: self.instance_id.clone(),
        }
    }
}

fn add<F: Future<Output = ()> + Send + 'static>(
    tasks: &mut TaskTransaction<Signal, ExportSettings>,
    signal: Signal,
    settings: &ExportSettings,
    work: impl FnOnce(TaskContext<ExportSettings>) -> F,
) {
    let name = format!("export of {}", signal.name());
    tasks.add(signal, name, settings.clone(), work);
}

fn collector_settings(otlp: &Otlp) -> CollectorSettings {
    let Otlp {
        endpoint,
        headers,
        ca_file,
        service_name: _,
        compression,
        timeout,
        traces: _,
        queue_spans: _,
        metrics: _,
        interval: _,
    } = otlp;
    let headers = headers.iter();
    let headers = headers.map(|field| (field.name.clone(), field.value.value.clone()));
    CollectorSettings {
        base_url: endpoint.to_string(),
        headers: headers.collect(),
        ca_file: ca_file.as_ref().map(|file| file.value.clone()),
        is_tls: endpoint.is_tls(),
        timeout: **timeout,
        gzip: **compression == OtlpCompression::Gzip,
    }
}

fn fault(otlp: &Otlp, error: &CollectorError) -> Diagnostic {
    let file = otlp.ca_file.as_ref().and_then(Setting::place);
    let place = file.or(otlp.endpoint.place()).unwrap_or_default();
    Diagnostic::new(DiagnosticCode::BadCertificate, place, error.to_string())
}

/// A version 4 UUID as text. [RFC 9562 §5.4]
fn uuid(random: KeySeed) -> String {
    let KeySeed { low, high } = random;
    let bits = u128::from(high) << 64 | u128::from(low);
    let bits = bits & !(0xF << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
    let digits = format!("{bits:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    let parts = parts.map(|part| digits.get(part).unwrap_or_default());
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_has_a_uuid_of_version_4() {
        let uuid = |low, high| uuid(KeySeed { low, high });
        let all = uuid(u64::MAX, u64::MAX);
        assert_eq!(all, "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid(0, 0), "00000000-0000-4000-8000-000000000000");
    }
}
