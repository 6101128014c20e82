//! The rehearsal of all loads, which trains the compiler's profile.

use crate::cases::{CASES, Plan};
use crate::effort::Effort;
use crate::measure::case_runner;
use crate::measure::comparison::Comparison;
use crate::servers::environment::{Environment, LoadBuild};
use std::path::PathBuf;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// Runs every load briefly on `proxyd` alone, without results.
///
/// # Errors
/// A case without a result.
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
