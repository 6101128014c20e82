//! Effects of a bundle on clients, and the guard that stopped it.

use std::fmt;

/// The outcome of one case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) case: &'static str,
    /// The guard that stopped it; empty if none did.
    pub(super) guard: &'static str,
    /// Answers that were not as expected, from nodes of the first batch.
    pub(super) wrong_inside: usize,
    /// Requests from other nodes.
    pub(super) wrong_outside: usize,
    /// From the first of them to the last.
    pub(super) wrong_secs: f64,
    /// The words of the guard.
    pub(super) reason: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            case,
            guard,
            wrong_inside,
            wrong_outside,
            wrong_secs,
            reason,
        } = self;
        let reason: String = reason.chars().take(200).collect();
        write!(
            f,
            "| {case} | {guard} | {wrong_inside} | {wrong_outside} | {wrong_secs:.1} | {reason} |"
        )
    }
}
