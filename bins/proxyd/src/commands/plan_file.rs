//! The plan of a configuration file that is compared with another one.

use crate::terminal::print_report;
use proxy_config::Loaded;
use proxy_plan::{Plan, TargetRegistry};
use std::path::Path;
use std::sync::Arc;

/// Exit code for a file that cannot be compared or replayed.
pub(super) const EXIT_FAULTS: u8 = 2;

/// The plan of the configuration `file`, after printing its faults. Its tests are not run.
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
