//! Detection of edited files of the active bundle.

use super::{Client, MAX_DIAGNOSTICS};
use crate::bundle::{Bundle, UnpackedFiles};
use crate::event::EventKind;
use control_wire::{NodeEvent, NodeStatus};
use jiff::Timestamp;
use std::path::Path;

impl Client {
    /// From now on, compares this bundle's files with each report.
    pub(super) fn watch_files(&mut self, bundle: &Bundle, folder: &Path) {
        let is_on_disk = !folder.as_os_str().is_empty();
        self.active_files = is_on_disk.then(|| bundle.unpacked_in(folder));
    }

    /// Adds edited files of the active bundle to the status; sends an event once.
    pub(super) fn compare_files(&mut self, status: &mut NodeStatus) {
        let checked = self.active_files.as_ref().map(UnpackedFiles::check);
        let fault = checked.and_then(Result::err);
        status.altered = fault.is_some();
        if let Some(fault) = &fault {
            status.diagnostics.truncate(MAX_DIAGNOSTICS - 1);
            if self.last_alteration.is_none() {
                tracing::warn!(fault, "a file of the bundle in force was edited");
                self.events.push(NodeEvent {
                    at: Timestamp::now(),
                    kind: EventKind::BundleAltered.name().to_owned(),
                    message: fault.chars().take(1_000).collect(),
                });
            }
            status.diagnostics.push(fault.clone());
        }
        self.last_alteration = fault;
    }
}
