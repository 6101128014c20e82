//! The S3-compatible server that tests of the object store speak to, in a folder of its own.

use super::outcome;
use crate::command;
use crate::task_error::TaskError;
use crate::terminal::say;
use crate::workspace::Workspace;
use std::path::Path;

const NAME: &str = "moto";
/// With its server; the tests know how this line of releases announces its port.
const REQUIREMENT: &str = "moto[server]>=5.2,<6";
const PROGRAM: &str = "bin/moto_server";

/// Installs the server into the target folder, where tests look for it.
pub(super) fn install(workspace: &Workspace) -> Option<String> {
    let folder = match workspace.target_dir() {
        Ok(target) => target.join(NAME),
        Err(error) => return Some(format!("{NAME} ({})", error.told())),
    };
    if folder.join(PROGRAM).is_file() {
        say(format!("setup: {NAME} is here"));
        return None;
    }
    outcome(NAME, install_into(workspace, &folder))
}

fn install_into(workspace: &Workspace, folder: &Path) -> Result<(), TaskError> {
    let mut environment = workspace.command("python3");
    command::run(environment.args(["-m", "venv"]).arg(folder))?;
    let pip = folder.join("bin/pip");
    let mut pip = workspace.command(&pip.to_string_lossy());
    command::run(pip.args(["install", "--quiet", REQUIREMENT]))
}
