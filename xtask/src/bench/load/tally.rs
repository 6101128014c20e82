//! What the clients of a drive have seen: answers, how late they were, and failures.

use super::fault::Fault;
use std::time::Duration;

/// Failures after which a drive is given up.
const HOPELESS: u64 = 1_000;

/// Counts and times.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Requests that came to any end, from the first on.
    pub(super) settled: u64,
    /// Requests that failed, from the first on.
    pub(super) failed: u64,
    /// The first failure.
    pub(super) failure: Option<Fault>,
    times: Vec<Duration>,
}

impl Tally {
    /// Forgets the answers; failures are remembered.
    pub(super) fn start_afresh(&mut self) {
        self.times.clear();
    }

    /// Counts an answer.
    pub(super) fn answer(&mut self, time: Duration) {
        self.settled += 1;
        self.times.push(time);
    }

    /// Counts requests that failed together.
    pub(super) fn fail(&mut self, requests: u64, fault: &Fault) {
        self.settled += requests;
        self.failed += requests;
        self.failure.get_or_insert_with(|| fault.clone());
    }

    /// Whether it is no use going on.
    pub(super) fn is_hopeless(&self) -> bool {
        self.failed >= HOPELESS
    }

    /// Answers since the last fresh start.
    pub(super) fn answered(&self) -> u64 {
        self.times.len() as u64
    }

    /// The times within which so many in a thousand of the answers came.
    pub(super) fn quantiles<const N: usize>(&mut self, per_mille: [usize; N]) -> [Duration; N] {
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
    fn quantiles_are_answers_that_came() {
        let mut tally = Tally::default();
        for millis in (1..=1_001).rev() {
            tally.answer(Duration::from_millis(millis));
        }
        let found = tally
            .quantiles([500, 990, 1_000])
            .map(|time| time.as_millis());
        assert_eq!(found, [501, 991, 1_001]);
    }

    #[test]
    fn nothing_has_quantiles_of_nothing() {
        assert_eq!(Tally::default().quantiles([500]), [Duration::ZERO]);
    }

    #[test]
    fn a_fresh_start_forgets_answers_and_keeps_failures() {
        let mut tally = Tally::default();
        tally.answer(Duration::ZERO);
        tally.fail(3, &Fault::Closed);
        tally.fail(1, &Fault::Length);
        tally.start_afresh();

        assert_eq!((tally.answered(), tally.failed, tally.settled), (0, 4, 5));
        assert_eq!(tally.failure, Some(Fault::Closed));
        assert!(!tally.is_hopeless());
    }
}
