//! Tasks in separate programs, which other tasks need not compile: `bench`, `canonical`, `demo`,
//! `package`.

use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// Builds the program and runs it with `arguments`.
pub(crate) fn run<S: AsRef<str>>(
    workspace: &Workspace,
    name: &str,
    arguments: &[S],
) -> Result<(), TaskError> {
    let mut cargo = workspace.cargo(&["run", "--quiet", "--locked", "--bin", name, "--"]);
    cargo.args(arguments.iter().map(AsRef::as_ref));
    command::run(&mut cargo)
}
