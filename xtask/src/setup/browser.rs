//! The browser driver of page tests, in a folder of its own in the target folder.

use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// The folder in the target folder.
const FOLDER: &str = "browser";
/// Modules of Node, each within one major version: the driver, and the check of accessibility.
const MODULES: &[&str] = &["playwright-core@1", "axe-core@4"];
/// Files that are there once the modules are.
const PROOFS: &[&str] = &[
    "node_modules/playwright-core/package.json",
    "node_modules/axe-core/axe.min.js",
];

/// Installs the modules; whether they were missing.
pub(super) fn install(workspace: &Workspace) -> Result<bool, TaskError> {
    let folder = workspace.target_dir()?.join(FOLDER);
    if PROOFS.iter().all(|proof| folder.join(proof).is_file()) {
        return Ok(false);
    }
    let mut npm = workspace.command("npm");
    let flags = [
        "install",
        "--no-audit",
        "--no-fund",
        "--no-save",
        "--prefix",
    ];
    command::run(npm.args(flags).arg(&folder).args(MODULES))?;
    Ok(true)
}
