//! Modules of Node for tests, each set in a folder of its own in the target folder.

use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// A set of modules.
pub(super) struct NodeModules {
    /// The folder in the target folder.
    folder: &'static str,
    /// Modules, each within one major version.
    modules: &'static [&'static str],
    /// Files that prove the modules are installed.
    proofs: &'static [&'static str],
}

/// Packages by which the tests of pages drive a browser: the driver, and the check of accessibility.
pub(super) const BROWSER: NodeModules = NodeModules {
    folder: "browser",
    modules: &["playwright-core@1", "axe-core@4"],
    proofs: &[
        "node_modules/playwright-core/package.json",
        "node_modules/axe-core/axe.min.js",
    ],
};

/// Identity providers of `cargo xtask identity`.
pub(super) const IDENTITY: NodeModules = NodeModules {
    folder: "identity",
    modules: &["samlify@2", "oidc-provider@9"],
    proofs: &[
        "node_modules/samlify/package.json",
        "node_modules/oidc-provider/package.json",
    ],
};

impl NodeModules {
    /// Installs the modules; whether they were missing.
    pub(super) fn install(&self, workspace: &Workspace) -> Result<bool, TaskError> {
        let folder = workspace.target_dir()?.join(self.folder);
        if self.proofs.iter().all(|proof| folder.join(proof).is_file()) {
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
        command::run(npm.args(flags).arg(&folder).args(self.modules))?;
        Ok(true)
    }
}
