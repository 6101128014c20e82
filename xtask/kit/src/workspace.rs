//! Paths of the workspace, and commands in it.

use crate::command;
use crate::task_error::TaskError;
use serde_json::Value;
use std::env;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of `cargo` for measurements: an optimised build without link-time optimisation, which takes
/// longer than most measurements.
pub const OPTIMISED: [&str; 2] = ["--profile", "guard"];

/// The workspace that this task was built from.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    ci: bool,
}

impl Workspace {
    /// Finds the workspace of the running task.
    ///
    /// # Errors
    /// The program was not started by cargo.
    pub fn find() -> Result<Self, TaskError> {
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let root = manifest_dir.as_deref().and_then(Path::parent);
        let Some(root) = root else {
            return Err(TaskError::Failed(
                "run this as `cargo xtask <task>`".to_owned(),
            ));
        };
        Ok(Self {
            root: root.to_owned(),
            ci: env::var_os("CI").is_some_and(|value| value == "true"),
        })
    }

    /// Returns the folder with the root `Cargo.toml`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns true for `CI=true`. A missing tool is a failure then; otherwise the step is skipped.
    pub fn is_ci(&self) -> bool {
        self.ci
    }

    /// Creates a command in the root folder.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// Creates a `cargo` command in the root folder.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let program = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut command = self.command(&program);
        command.args(arguments);
        // `cargo` writes to a pipe, so it cannot detect the terminal's colours.
        if env::var_os("CARGO_TERM_COLOR").is_none() {
            let coloured = io::stdout().is_terminal() && !self.ci;
            command.env(
                "CARGO_TERM_COLOR",
                if coloured { "always" } else { "never" },
            );
        }
        // CI builds each checkout only once, so incremental files would be useless.
        if self.ci {
            command.env("CARGO_INCREMENTAL", "0");
        }
        command
    }

    /// Returns the target triple of the host.
    ///
    /// # Errors
    /// `rustc` cannot be started.
    pub fn host(&self) -> Result<String, TaskError> {
        let host = command::read(self.command("rustc").args(["--print", "host-tuple"]))?;
        Ok(host.trim().to_owned())
    }

    /// Runs `cargo metadata`, with dependencies for the host's platform.
    ///
    /// # Errors
    /// `cargo` fails, or its output is not JSON.
    pub fn metadata(&self) -> Result<Value, TaskError> {
        let host = self.host()?;
        let text = command::read(&mut self.cargo(&[
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            &host,
        ]))?;
        serde_json::from_str(&text).map_err(|source| TaskError::Json {
            program: "cargo metadata",
            source,
        })
    }

    /// Returns the target folder of `cargo`.
    ///
    /// # Errors
    /// `cargo` fails, or its output contains no target folder.
    pub fn target_dir(&self) -> Result<PathBuf, TaskError> {
        let metadata = self.metadata()?;
        let folder = metadata.get("target_directory").and_then(Value::as_str);
        folder
            .map(PathBuf::from)
            .ok_or_else(|| TaskError::Failed("cargo metadata names no target folder".to_owned()))
    }
}
