//! The S3-compatible server that tests of the object store speak to, in a folder of its own.

use crate::command;
use crate::task_error::TaskError;
use crate::workspace::Workspace;
use std::path::Path;

pub(super) const NAME: &str = "moto";
/// With its server; the tests know how this line of releases announces its port.
const REQUIREMENT: &str = "moto[server]>=5.2,<6";
const PROGRAM: &str = "bin/moto_server";

/// Installs the server into the target folder, where tests look for it; whether it was missing.
pub(super) fn install(workspace: &Workspace) -> Result<bool, TaskError> {
    let folder = workspace.target_dir()?.join(NAME);
    let is_missing = !folder.join(PROGRAM).is_file();
    if is_missing {
        install_into(workspace, &folder)?;
    }
    Ok(is_missing)
}

fn install_into(workspace: &Workspace, folder: &Path) -> Result<(), TaskError> {
    let mut environment = workspace.command("python3");
    command::run(environment.args(["-m", "venv"]).arg(folder))?;
    let pip = folder.join("bin/pip");
    let mut pip = workspace.command(&pip.to_string_lossy());
    command::run(pip.args(["install", "--quiet", REQUIREMENT]))
}
