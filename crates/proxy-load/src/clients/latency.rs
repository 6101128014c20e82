//! Recorded results of a load: response times and failures.

use crate::request_error::RequestError;
use std::time::Duration;

/// Number of failures after which a load is aborted.
const MAX_FAILED_REQUESTS: u64 = 1_000;

/// Counts and times.
#[derive(Debug, Default)]
pub(crate) struct LatencyRecorder {
    /// Number of finished requests, with any result, since the start.
    pub(crate) settled: u64,
    /// Failed requests since the start.
    pub(crate) failed: u64,
    /// The first failure.
    pub(crate) failure: Option<RequestError>,
    times: Vec<Duration>,
}

impl LatencyRecorder {
    /// Drops the response times; failures are kept.
    pub(crate) fn reset(&mut self) {
        self.times.clear();
    }

    /// Counts an answer.
    pub(crate) fn record(&mut self, time: Duration) {
        self.settled += 1;
        self.times.push(time);
    }

    /// Counts requests that failed together.
    pub(crate) fn fail(&mut self, requests: u64, fault: &RequestError) {
        self.settled += requests;
        self.failed += requests;
        self.failure.get_or_insert_with(|| fault.clone());
    }

    /// Returns true if the load should be aborted.
    pub(crate) fn should_abort(&self) -> bool {
        self.failed >= MAX_FAILED_REQUESTS
    }

    /// Responses since the last fresh start.
    pub(crate) fn answered(&self) -> u64 {
        self.times.len() as u64
    }

    /// Percentiles of the response times, in thousandths.
    pub(crate) fn quantiles<const N: usize>(&mut self, per_mille: [usize; N]) -> [Duration; N] {
        self.times.sort_unstable();
        let last = self.times.len().saturating_sub(1);
        per_mille.map(|part| {
            let place = last * part / 1_000;
            self.times.get(place).copied().unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_observed_values() {
        let mut recorder = LatencyRecorder::default();
        for millis in (1..=1_001).rev() {
            recorder.record(Duration::from_millis(millis));
        }
        let found = recorder
            .quantiles([500, 990, 1_000])
            .map(|time| time.as_millis());
        assert_eq!(found, [501, 991, 1_001]);
    }

    #[test]
    fn nothing_has_quantiles_of_nothing() {
        assert_eq!(
            LatencyRecorder::default().quantiles([500]),
            [Duration::ZERO]
        );
    }

    #[test]
    fn a_fresh_start_drops_answers_and_keeps_failures() {
        let mut recorder = LatencyRecorder::default();
        recorder.record(Duration::ZERO);
        recorder.fail(3, &RequestError::Closed);
        recorder.fail(1, &RequestError::Length);
        recorder.reset();

        assert_eq!(
            (recorder.answered(), recorder.failed, recorder.settled),
            (0, 4, 5)
        );
        assert_eq!(recorder.failure, Some(RequestError::Closed));
        assert!(!recorder.should_abort());
    }
}
