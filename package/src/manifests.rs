//! Manifests of Kubernetes, checked against its schemas.

use crate::tree;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// The oldest release that the manifests are for, and the newest one that the validator has.
const RELEASES: [&[&str]; 2] = [&["--kubernetes-version", "1.30"], &[]];

/// Checks `examples/kubernetes`: unknown fields are failures.
pub(crate) fn check(workspace: &Workspace) -> Result<(), TaskError> {
    let program = workspace
        .target_dir()?
        .join("kubernetes/bin/kubernetes-validate");
    if !program.is_file() {
        return crate::trial::skip(workspace, "kubernetes-validate is not installed");
    }
    let files = tree::entries(&workspace.root().join("examples/kubernetes"))?;
    for release in RELEASES {
        let mut validate = workspace.command(&program.to_string_lossy());
        validate.args(["--strict", "--quiet"]).args(release);
        command::run(validate.args(&files))?;
    }
    say("package: the manifests fit the schemas of Kubernetes");
    Ok(())
}
