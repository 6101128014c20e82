//! The control plane of the demo, set up and used through `controld ctl` as an operator would.

use crate::fuzz_api::build;
use crate::task_error::TaskError;
use crate::terminal::say;
use crate::workspace::Workspace;
use control_testkit::Program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A running control plane with a project and a key.
pub(super) struct Control {
    program: Program,
    controld: PathBuf,
    key: String,
    folder: TempDir,
}

impl Control {
    /// Builds and starts it, sets it up by its link, and makes a project and a key.
    pub(super) fn start(workspace: &Workspace, config: &str) -> Result<Self, TaskError> {
        say("demo: building controld");
        let controld = build(workspace)?;
        let folder = tempfile::tempdir().map_err(|source| TaskError::System {
            deed: "make a folder",
            source,
        })?;
        let data = folder.path().join("data").display().to_string();
        let mut program = Program::start(&controld.to_string_lossy(), &["--data-dir", &data]);
        let link = program.setup_token();
        let mut control = Self {
            program,
            controld,
            key: link,
            folder,
        };
        say(format!(
            "demo: controld's one-time link, which the next command uses up:\n  {}/setup?token={}",
            control.url(),
            control.key
        ));
        let set_up = [
            "setup",
            "run",
            "--org-name",
            "demo",
            "--email",
            "admin@example.com",
            "--user-name",
            "Administrator",
            "--password",
            "correct horse",
            "--api-key-name",
            "first",
            "-o",
            "json",
        ];
        control.key = text(&control.ctl(&set_up)?, "/api_key/secret")?;
        control.ctl(&["project", "create", "--name", "edge"])?;
        let create = [
            "api-key",
            "create",
            "--name",
            "demo",
            "--project",
            "edge",
            "-o",
            "json",
        ];
        control.key = text(&control.ctl(&create)?, "/secret")?;
        control.bundle(&workspace.root().join(config))?;
        Ok(control)
    }

    /// A signed bundle of the configuration that proxyd shows.
    fn bundle(&self, config: &Path) -> Result<(), TaskError> {
        let folder = self.folder.path().join("bundle");
        let file = folder.join("proxy.kdl");
        let copied = fs::create_dir_all(&folder).and_then(|()| fs::copy(config, &file));
        copied.map_err(|source| TaskError::File { path: file, source })?;
        let folder = folder.display().to_string();
        let create = [
            "bundle",
            "create",
            "--name",
            "quickstart",
            "-f",
            &folder,
            "-o",
            "json",
        ];
        let made = self.ctl(&create)?;
        match text(&made, "/state")?.as_str() {
            "signed" => Ok(()),
            other => Err(TaskError::Failed(format!("the bundle is {other}: {made}"))),
        }
    }

    /// What to try.
    pub(super) fn invitation(&self) -> String {
        let (url, key) = (self.url(), &self.key);
        let controld = self.controld.display();
        format!(
            "
demo: controld listens on {url}; its interface is shown at {url}/api/docs

  export CONTROLD_URL={url} CONTROLD_API_KEY={key}
  {controld} ctl whoami                                    the key, and what it may do
  {controld} ctl bundle list
  {controld} ctl api-key list -o json
"
        )
    }

    fn url(&self) -> &str {
        self.program.base_url()
    }

    fn ctl(&self, arguments: &[&str]) -> Result<String, TaskError> {
        let done = Command::new(&self.controld)
            .arg("ctl")
            .args(arguments)
            .env("CONTROLD_URL", self.url())
            .env("CONTROLD_API_KEY", &self.key)
            .output()
            .map_err(|source| TaskError::Start {
                program: self.controld.display().to_string(),
                source,
            })?;
        let words: Vec<&str> = arguments.iter().copied().take(2).collect();
        let words = words.join(" ");
        if !done.status.success() {
            let told = String::from_utf8_lossy(&done.stderr).into_owned();
            return Err(TaskError::Failed(format!("ctl {words}: {told}")));
        }
        say(format!("demo: controld ctl {words}"));
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

fn text(answer: &str, pointer: &str) -> Result<String, TaskError> {
    let value: Result<serde_json::Value, _> = serde_json::from_str(answer);
    let value = value.ok();
    let found = value
        .as_ref()
        .and_then(|value| value.pointer(pointer)?.as_str());
    let missing = || TaskError::Failed(format!("ctl answered without {pointer}"));
    found.map(str::to_owned).ok_or_else(missing)
}
