//! The rehearsal of all loads, which trains the compiler's profile.

use super::case_runner;
use super::cases::{CASES, Plan};
use super::comparison::Comparison;
use super::effort::Effort;
use super::environment::{Environment, LoadBuild};
use crate::task_error::TaskError;
use crate::workspace::Workspace;
use std::path::PathBuf;

/// Runs every load briefly on `proxyd` alone, without results.
///
/// # Errors
/// A case without a result.
pub(crate) fn rehearse(workspace: &Workspace, proxyd: PathBuf) -> Result<(), TaskError> {
    let environment = Environment::prepare(workspace, LoadBuild::Release, proxyd)?;
    let mut comparison = Comparison::of_proxyd_alone(&environment, Effort::QUICK)?;
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
