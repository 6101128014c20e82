//! Node modules for tests, in separate folders below the target folder.

use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// Node modules in one folder.
pub(super) struct NodeModules {
    /// Name of the folder.
    folder: &'static str,
    /// Modules with major versions.
    modules: &'static [&'static str],
    /// Files that show that the modules are installed.
    proofs: &'static [&'static str],
}

/// Modules with which tests control a browser, and check the accessibility of pages.
pub(super) const BROWSER: NodeModules = NodeModules {
    folder: "browser",
    modules: &["playwright-core@1", "axe-core@4"],
    proofs: &[
        "node_modules/playwright-core/package.json",
        "node_modules/axe-core/axe.min.js",
    ],
};

/// Modules of identity providers for `cargo xtask identity`.
pub(super) const IDENTITY: NodeModules = NodeModules {
    folder: "identity",
    modules: &["samlify@2", "oidc-provider@9"],
    proofs: &[
        "node_modules/samlify/package.json",
        "node_modules/oidc-provider/package.json",
    ],
};

impl NodeModules {
    /// Installs the modules. Returns true if they were missing.
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
