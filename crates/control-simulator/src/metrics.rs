//! Cost of a simulation for the control plane.

use crate::operator::Operator;
use proxy_load::clock::Stopwatch;
use proxy_load::meter;
use std::fmt;
use std::time::Duration;

/// A measurement that was begun.
#[derive(Clone, Debug)]
pub struct Measurement {
    clock: Stopwatch,
    cpu: Duration,
    metrics: String,
    calls: usize,
}

/// Resources of the control plane between two moments.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The time between them.
    pub time: Duration,
    /// Processor time of the control plane.
    pub cpu: Duration,
    /// Resident memory at the end.
    pub memory_bytes: u64,
    /// Requests that the control plane answered.
    pub requests: f64,
    /// Rows that it inserted, updated or deleted.
    pub rows_written: f64,
    /// Steps of rollouts, with those that found nothing to do.
    pub steps: f64,
    /// The mean time of a step.
    pub step_time: Duration,
    /// 99th percentile of the operator's calls; `None` without calls.
    pub call_p99: Option<Duration>,
}

impl Measurement {
    /// Begins now.
    pub fn start(operator: &Operator) -> Self {
        Self {
            clock: Stopwatch::start(),
            cpu: meter::cpu(&[operator.process()]),
            metrics: operator.metrics(),
            calls: operator.latencies().len(),
        }
    }

    /// Usage since the start.
    pub fn usage(&self, operator: &Operator) -> Usage {
        let metrics = operator.metrics();
        let since = |name: &str| sum(&metrics, name) - sum(&self.metrics, name);
        let steps = since("control_rollout_step_duration_seconds_count");
        let step_seconds = since("control_rollout_step_duration_seconds_sum");
        let mut calls = operator.latencies().split_off(self.calls);
        Usage {
            time: self.clock.elapsed(),
            cpu: meter::cpu(&[operator.process()]).saturating_sub(self.cpu),
            memory_bytes: meter::memory_bytes(&[operator.process()]),
            requests: since("control_requests_total"),
            rows_written: since("control_rows_written_total"),
            steps,
            step_time: Duration::try_from_secs_f64(step_seconds / steps.max(1.0))
                .unwrap_or_default(),
            call_p99: quantile(&mut calls, 990),
        }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = self.memory_bytes / (1024 * 1024);
        write!(
            f,
            "{:.1} s; controld: {:.1} s of CPU, {mebibytes} MiB, {:.0} requests, {:.0} rows written; \
             {:.0} steps of {:.2} ms",
            self.time.as_secs_f64(),
            self.cpu.as_secs_f64(),
            self.requests,
            self.rows_written,
            self.steps,
            self.step_time.as_secs_f64() * 1_000.0,
        )?;
        match self.call_p99 {
            Some(p99) => write!(f, "; p99 of calls {:.1} ms", p99.as_secs_f64() * 1_000.0),
            None => Ok(()),
        }
    }
}

/// The duration that this many of 1000 do not exceed; `None` without durations.
pub fn quantile(durations: &mut [Duration], permille: usize) -> Option<Duration> {
    durations.sort_unstable();
    let last = durations.len().checked_sub(1)?;
    durations.get(last * permille / 1_000).copied()
}

/// The sum of all series of a metric.
fn sum(page: &str, name: &str) -> f64 {
    let series = page.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let own = series.split('{').next() == Some(name);
        own.then(|| value.parse::<f64>().ok()).flatten()
    });
    series.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_series_of_a_metric_are_added_up() {
        let page = "# HELP a b\na{x=\"1\"} 2\na{x=\"2\"} 3\na_b 9\n";
        assert!((sum(page, "a") - 5.0).abs() < f64::EPSILON);
        assert!(sum(page, "c").abs() < f64::EPSILON);
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let mut durations: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(
            quantile(&mut durations, 990),
            Some(Duration::from_millis(99))
        );
        assert_eq!(quantile(&mut [], 990), None);
    }
}
