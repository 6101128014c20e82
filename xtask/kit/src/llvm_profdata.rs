//! `llvm-profdata`, which merges the profiles of instrumented builds.

use crate::command;
use crate::task_error::TaskError;
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};

/// Component of the toolchain that contains the program.
pub const COMPONENT: &str = "llvm-tools";

/// Returns the path of the program. Installs it if it is missing.
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

/// Returns the path of the program in the current toolchain: the format of profiles depends on the
/// compiler's version.
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
