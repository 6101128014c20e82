//! `cargo xtask package`: the program `package`. No other task compiles it.

use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// Builds the program, and runs it with these options.
pub(crate) fn run(workspace: &Workspace, options: &[String]) -> Result<(), TaskError> {
    let mut cargo = workspace.cargo(&["run", "--quiet", "--locked", "--bin", "package", "--"]);
    command::run(cargo.args(options))
}
