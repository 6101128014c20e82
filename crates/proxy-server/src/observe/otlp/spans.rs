//! The export of spans.

use super::exporter::{BATCH_SPANS, Dropped, ExportSettings, Exporter};
use crate::runtime::task_scope::TaskContext;
use proxy_otlp::encode_spans;
use proxy_telemetry::{Exemplar, Registry, RequestSpan, SpanQueue, UNMATCHED, names};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// Time that spans are collected for, before a request to the collector.
const BATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Exports the spans of the queue until the settings are gone, or until it is empty in a flush.
pub(super) async fn run(
    context: TaskContext<ExportSettings>,
    mut exporter: Exporter,
    spans: Arc<SpanQueue>,
) {
    let mut settings = context.settings;
    let mut ticks = tokio::time::interval(BATCH_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_last = settings.borrow_and_update().is_flushing;
        loop {
            let batch = spans.take(BATCH_SPANS);
            if batch.is_empty() {
                break;
            }
            export(&batch, &mut exporter, &mut settings).await;
        }
        if is_last {
            return;
        }
        tokio::select! {
            _ = ticks.tick() => {}
            changed = settings.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

async fn export(
    batch: &[Box<RequestSpan>],
    exporter: &mut Exporter,
    settings: &mut watch::Receiver<ExportSettings>,
) {
    show_exemplars(batch, exporter.registry());
    let count: usize = batch.iter().map(|request| request.spans()).sum();
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    let resource = Arc::clone(&settings.borrow().resource);
    let body = encode_spans(&resource, batch);
    let (taken, dropped) = match exporter.export(body, settings).await {
        Ok(rejected) => {
            let rejected = rejected.min(count);
            (count - rejected, (rejected, Dropped::Refused))
        }
        Err(reason) => (0, (count, reason)),
    };
    let registry = exporter.registry();
    registry
        .counter(&names::OTLP_SPANS_EXPORTED_TOTAL, [])
        .add(taken);
    let (lost, reason) = dropped;
    registry
        .counter(&names::OTLP_SPANS_DROPPED_TOTAL, [reason.name()])
        .add(lost);
}

/// Attaches requests as exemplars to the buckets of their routes' durations. The exporter does it,
/// so that requests pay nothing for it.
fn show_exemplars(batch: &[Box<RequestSpan>], registry: &Registry) {
    for request in batch {
        let exemplar = Exemplar {
            trace_id: request.trace_id,
            span_id: request.span_id,
            took: request.took(),
            at: request.ended,
        };
        let route = request.route.as_deref().unwrap_or(UNMATCHED);
        registry.set_exemplar(route, exemplar);
    }
}
