//! `llvm-profdata`, the program that merges profiles of instrumented builds.

use crate::command;
use crate::task_error::TaskError;
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};

/// Name of the toolchain's component that contains the program.
pub const COMPONENT: &str = "llvm-tools";

/// Path of the program, installed first if it is missing.
///
/// # Errors
/// `rustup` cannot install it.
pub fn installed(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    if let Ok(path) = path(workspace) {
        return Ok(path);
    }
    command::run(
        workspace
            .command("rustup")
            .args(["component", "add", COMPONENT]),
    )?;
    path(workspace)
}

/// Path of the program. It belongs to the current compiler, because the format depends on its version.
///
/// # Errors
/// It is not installed, or the compiler's folder cannot be determined.
pub fn path(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    let sysroot = command::read(workspace.command("rustc").args(["--print", "sysroot"]))?;
    let library = Path::new(sysroot.trim()).join("lib/rustlib");
    let program = library.join(workspace.host()?).join("bin/llvm-profdata");
    if program.is_file() {
        return Ok(program);
    }
    let advice = "llvm-profdata is missing; `rustup component add llvm-tools` installs it";
    Err(TaskError::Failed(advice.to_owned()))
}
