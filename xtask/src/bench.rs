//! `cargo xtask bench` and `cargo xtask ship`: tasks of the program `bench`. No other task compiles it.

use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// Builds the program, and runs it with these arguments.
pub(crate) fn run<S: AsRef<str>>(workspace: &Workspace, arguments: &[S]) -> Result<(), TaskError> {
    let mut cargo = workspace.cargo(&["run", "--quiet", "--locked", "--bin", "bench", "--"]);
    cargo.args(arguments.iter().map(AsRef::as_ref));
    command::run(&mut cargo)
}
