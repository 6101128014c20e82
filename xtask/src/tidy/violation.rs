//! Violations found by a check.

use std::fmt;

/// A violation in a line, or of a file or crate as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Violation {
    place: String,
    line: Option<usize>,
    what: String,
}

impl Violation {
    /// Creates a violation of a file or crate as a whole.
    pub(super) fn whole(place: &str, what: impl Into<String>) -> Self {
        Self {
            place: place.to_owned(),
            line: None,
            what: what.into(),
        }
    }

    /// Creates a violation in one line; `index` starts at 0.
    pub(super) fn on_line(place: &str, index: usize, what: impl Into<String>) -> Self {
        Self {
            place: place.to_owned(),
            line: Some(index + 1),
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(out, "{}:{line}: {}", self.place, self.what),
            None => write!(out, "{}: {}", self.place, self.what),
        }
    }
}

/// Formats violations for comparison in tests.
#[cfg(test)]
pub(super) fn rendered(faults: &[Violation]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}
