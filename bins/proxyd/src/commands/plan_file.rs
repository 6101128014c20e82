//! Plan of a configuration file, for comparisons.

use crate::terminal::print_report;
use proxy_config::Loaded;
use proxy_plan::{Plan, TargetRegistry};
use std::path::Path;
use std::sync::Arc;

/// Exit code if a file is unreadable or invalid.
pub(super) const EXIT_FAULTS: u8 = 2;

/// Loads a configuration without running its tests. Prints its faults.
pub(super) fn plan(file: &Path) -> Option<Plan> {
    match proxy_config::load(file) {
        Ok(Loaded { model, .. }) => Some(Plan::compile(
            1,
            Arc::new(model),
            &mut TargetRegistry::default().begin(),
        )),
        Err(report) => {
            print_report(&report);
            None
        }
    }
}
