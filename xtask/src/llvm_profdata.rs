//! The program that merges profiles of instrumented builds.

use crate::command;
use crate::task_error::TaskError;
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};

/// The `llvm-profdata` of the current compiler, because the format depends on its version.
///
/// # Errors
/// It is not installed, or the compiler cannot be asked for its folder.
pub(crate) fn path(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    let sysroot = command::read(workspace.command("rustc").args(["--print", "sysroot"]))?;
    let library = Path::new(sysroot.trim()).join("lib/rustlib");
    let program = library.join(workspace.host()?).join("bin/llvm-profdata");
    if program.is_file() {
        return Ok(program);
    }
    let advice = "llvm-profdata is missing; `rustup component add llvm-tools` installs it";
    Err(TaskError::Failed(advice.to_owned()))
}
