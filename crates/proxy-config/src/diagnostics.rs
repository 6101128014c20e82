//! Collection of diagnostics, bounded in number.

use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::Severity;
use crate::report::Report;
use proxy_model::Sources;

/// Maximum number of diagnostics kept of one configuration; further ones are counted.
const MAX_KEPT: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    list: Vec<Diagnostic>,
    dropped: usize,
    errors: bool,
}

impl Diagnostics {
    pub(crate) fn push(&mut self, fault: Diagnostic) {
        self.errors |= fault.severity() == Severity::Error;
        if self.is_full() {
            self.drop_one();
        } else {
            self.list.push(fault);
        }
    }

    /// Returns true if the bound is reached, so that further faults are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= MAX_KEPT
    }

    /// Counts a fault without keeping it.
    pub(crate) fn drop_one(&mut self) {
        self.dropped += 1;
    }

    /// Returns true if an error was found, so that the configuration is refused.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Adds the diagnostics of `later` that pass `keep`, which gets the earlier ones.
    pub(crate) fn extend(
        &mut self,
        later: Self,
        keep: impl Fn(&[Diagnostic], &Diagnostic) -> bool,
    ) {
        let Self {
            list,
            dropped,
            errors,
        } = later;
        let earlier = self.list.clone();
        for fault in list {
            if keep(&earlier, &fault) {
                self.push(fault);
            }
        }
        self.dropped += dropped;
        // Errors among those that were not kept are not in the list.
        self.errors |= errors && dropped > 0;
    }

    pub(crate) fn into_report(self, sources: Sources) -> Report {
        Report::new(sources, self.list).and_dropped(self.dropped)
    }
}
