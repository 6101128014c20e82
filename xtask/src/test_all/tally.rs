//! Number of passed and failed tests, parsed from the output of test runners, and skipped steps.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums over all runs.
#[derive(Debug, Default)]
pub(super) struct Tally {
    passed: AtomicU64,
    failed: AtomicU64,
}

/// Result of all steps.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) tests: Tally,
    skipped: RefCell<Vec<String>>,
}

impl Outcome {
    /// Records a skipped step.
    pub(super) fn skip(&self, step: &str, reason: &str) {
        self.skipped.borrow_mut().push(format!("{step} ({reason})"));
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tests, skipped } = self;
        write!(out, "{tests}")?;
        let skipped = skipped.borrow();
        if skipped.is_empty() {
            return Ok(());
        }
        write!(out, ", {} skipped: {}", skipped.len(), skipped.join(", "))
    }
}

impl Tally {
    /// Adds the counts of a run.
    pub(super) fn add(&self, passed: u64, failed: u64) {
        self.passed.fetch_add(passed, Ordering::Relaxed);
        self.failed.fetch_add(failed, Ordering::Relaxed);
    }

    /// Parses a line, and adds its counts if it is the summary of `cargo test` or nextest.
    pub(super) fn read(&self, line: &str) {
        let line = uncoloured(line);
        // Indented lines are output of tests, which nextest has counted already.
        let counts = line.strip_prefix("test result: ").or_else(|| {
            let (_, summary) = line.split_once("Summary [")?;
            Some(summary.split_once(" run: ")?.1)
        });
        for item in counts.unwrap_or_default().split([',', ';', '.']) {
            let mut words = item.split_whitespace();
            let Some(number) = words.next().and_then(|word| word.parse().ok()) else {
                continue;
            };
            match words.next() {
                Some("passed") => self.add(number, 0),
                Some("failed" | "timed" | "exec") => self.add(0, number),
                _ => {}
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passed = self.passed.load(Ordering::Relaxed);
        let failed = self.failed.load(Ordering::Relaxed);
        write!(out, "{passed} passed, {failed} failed")
    }
}

/// Removes terminal colour codes (`ESC [ … letter`) from a line.
fn uncoloured(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let text = piece.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        plain.push_str(text.get(1..).unwrap_or_default());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> String {
        let tally = Tally::default();
        for line in lines {
            tally.read(line);
        }
        tally.to_string()
    }

    #[test]
    fn closing_lines_of_every_runner_add_up() {
        let lines = [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; \
             finished in 0.00s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "     Summary [   0.010s] 40 tests run: 38 passed (1 slow), 1 failed, 1 timed out, \
             2 skipped",
            "     Summary [   0.010s] 1 test run: 1 passed, 0 skipped",
        ];
        assert_eq!(read(&lines), "43 passed, 4 failed");
    }

    #[test]
    fn the_closing_line_names_the_steps_that_were_skipped() {
        let outcome = Outcome::default();
        outcome
            .tests
            .read("test result: ok. 3 passed; 0 failed; 0 ignored");
        assert_eq!(outcome.to_string(), "3 passed, 0 failed");
        outcome.skip("guard", "valgrind is missing");
        outcome.skip("deny", "cargo-deny is missing");
        assert_eq!(
            outcome.to_string(),
            "3 passed, 0 failed, 2 skipped: guard (valgrind is missing), deny (cargo-deny is missing)"
        );
    }

    #[test]
    fn colours_do_not_hide_a_count() {
        let line = "\u{1b}[32;1m     Summary\u{1b}[0m [   0.010s] \u{1b}[1m5\u{1b}[0m tests run: \
                    \u{1b}[1m5\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m skipped";
        assert_eq!(read(&[line]), "5 passed, 0 failed");
    }

    #[test]
    fn a_test_that_prints_numbers_is_not_counted() {
        assert_eq!(read(&["12 passed, 3 failed"]), "0 passed, 0 failed");
    }
}
