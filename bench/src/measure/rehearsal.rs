//! Short run of all loads, as training for profile-guided optimization.

use crate::cases::{CASES, Plan};
use crate::effort::Effort;
use crate::measure::case_runner;
use crate::measure::comparison::Comparison;
use crate::servers::environment::{Environment, LoadBuild};
use std::path::PathBuf;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// Runs every load briefly on `proxyd` alone, and discards the results.
///
/// # Errors
/// A case failed.
pub(crate) fn rehearse(workspace: &Workspace, proxyd: PathBuf) -> Result<(), TaskError> {
    let environment = Environment::prepare(workspace, LoadBuild::Release, proxyd)?;
    let mut comparison = Comparison::for_proxyd_alone(&environment, Effort::QUICK)?;
    for case in CASES
        .iter()
        .filter(|case| !matches!(case.plan, Plan::Count))
    {
        let held = case_runner::run(&mut comparison, case)?;
        let lacking = held
            .entries
            .iter()
            .find_map(|entry| entry.unsupported.as_deref());
        if let Some(why) = lacking {
            return Err(TaskError::Failed(format!("{}: {why}", held.name)));
        }
    }
    Ok(())
}
