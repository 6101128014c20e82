//! A violation with its place.

use std::fmt;

/// A violation in a file, or of a crate as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Violation {
    place: String,
    line: Option<usize>,
    what: String,
}

impl Violation {
    /// A violation of a file or crate as a whole.
    pub(super) fn whole(place: &str, what: impl Into<String>) -> Self {
        Self {
            place: place.to_owned(),
            line: None,
            what: what.into(),
        }
    }

    /// A violation on one line; `index` counts from 0.
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

/// The violations as text, for comparison in tests.
#[cfg(test)]
pub(super) fn rendered(faults: &[Violation]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}
