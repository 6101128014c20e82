//! The export of metrics.

use super::exporter::{ExportSettings, Exporter};
use crate::runtime::task_scope::TaskContext;
use proxy_otlp::encode_metrics;
use proxy_telemetry::Lifecycle;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Interval, MissedTickBehavior};

/// Exports all metrics at each interval until the settings are gone, and again in a flush.
pub(super) async fn run(
    context: TaskContext<ExportSettings>,
    mut exporter: Exporter,
    lifecycle: Arc<Lifecycle>,
) {
    let TaskContext { mut settings, now } = context;
    let mut current = settings.borrow_and_update().clone();
    let mut ticks = after_each(current.interval).await;
    loop {
        let interval = current.interval;
        current = settings.borrow_and_update().clone();
        if current.interval != interval {
            ticks = after_each(current.interval).await;
        }
        if !current.is_flushing {
            tokio::select! {
                _ = ticks.tick() => {}
                changed = settings.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            }
        }
        let read = now();
        let points = lifecycle.points();
        let started = since_epoch(lifecycle.started());
        let body = encode_metrics(&current.resource, &points, started, since_epoch(read));
        // The next export has all counts again.
        let _exported = exporter.export(body, &mut settings).await;
        if current.is_flushing {
            return;
        }
    }
}

/// Ticks; the first one is a whole interval from now.
async fn after_each(interval: Duration) -> Interval {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    ticks
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}
