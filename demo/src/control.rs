//! The control plane of the demo, set up and used through `controld ctl` as an operator would.

use control_testkit::Program;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;

/// The administrator of the demo, for browsers. The control plane listens on loopback, and ends with the demo.
const EMAIL: &str = "admin@example.com";
const PASSWORD: &str = "correct horse";

/// A running control plane with a project and a key.
pub(super) struct Control {
    program: Program,
    controld: PathBuf,
    key: String,
    project: String,
    folder: TempDir,
}

impl Control {
    /// Starts this program, sets it up by its link, and creates a project and a key.
    pub(super) fn start(controld: PathBuf) -> Result<Self, TaskError> {
        let folder = tempfile::tempdir().map_err(|source| TaskError::System {
            action: "make a folder",
            source,
        })?;
        let data = folder.path().join("data").display().to_string();
        // Gates compare reports of nodes: with the interval of 30 seconds the demo would take
        // minutes. A log line for each request would hide the commands' output.
        let quiet = [("RUST_LOG".to_owned(), "warn".to_owned())];
        let arguments = ["--data-dir", &data, "--heartbeat-secs", "1"];
        let mut program = Program::start_with(&controld.to_string_lossy(), &arguments, &quiet);
        let link = program.setup_token();
        let mut control = Self {
            program,
            controld,
            key: link,
            project: String::new(),
            folder,
        };
        say(format!(
            "demo: controld's one-time link, which the next command uses up:\n  {}/set-up?token={}",
            control.url(),
            control.key
        ));
        let set_up = [
            "setup",
            "run",
            "--org-name",
            "demo",
            "--email",
            EMAIL,
            "--user-name",
            "Administrator",
            "--password",
            PASSWORD,
            "--api-key-name",
            "first",
            "-o",
            "json",
        ];
        control.key = text(&control.ctl(&set_up)?, "/api_key/secret")?;
        let create = ["project", "create", "--name", "edge", "-o", "json"];
        control.project = text(&control.ctl(&create)?, "/id")?;
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
        Ok(control)
    }

    /// A signed bundle of one file.
    pub(super) fn bundle(&self, name: &str, config: &str) -> Result<(), TaskError> {
        let folder = self.folder.path().join(name);
        let file = folder.join("proxy.kdl");
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, config));
        written.map_err(|source| TaskError::File { path: file, source })?;
        let folder = folder.display().to_string();
        let create = [
            "bundle", "create", "--name", name, "-f", &folder, "-o", "json",
        ];
        let made = self.ctl(&create)?;
        match text(&made, "/state")?.as_str() {
            "signed" => Ok(()),
            other => Err(TaskError::Failed(format!("the bundle is {other}: {made}"))),
        }
    }

    /// Plans a rollout with these flags, starts it, and shows its progress; returns its final
    /// state.
    pub(super) fn roll_out(&self, bundle: &str, flags: &[&str]) -> Result<String, TaskError> {
        let create = ["rollout", "create", "--bundle", bundle, "-o", "json"];
        let id = text(&self.ctl(&[&create, flags].concat())?, "/id")?;
        self.ctl(&["rollout", "start", &id])?;
        // It fails for a rollout that was rolled back; the state shows that.
        self.command(&["rollout", "status", &id, "--wait"])
            .status()
            .map_err(self.lost())?;
        text(&self.ctl(&["rollout", "get", &id, "-o", "json"])?, "/state")
    }

    /// A file with a token for this number of nodes.
    pub(super) fn enrolment_token(&self, nodes: usize) -> Result<PathBuf, TaskError> {
        let nodes = nodes.to_string();
        let create = [
            "enrolment-token",
            "create",
            "--name",
            "demo",
            "--max-uses",
            &nodes,
            "-o",
            "json",
        ];
        let secret = text(&self.ctl(&create)?, "/secret")?;
        let path = self.folder.path().join("enrolment.token");
        let written = fs::write(&path, secret);
        written.map_err(|source| TaskError::File {
            path: path.clone(),
            source,
        })?;
        Ok(path)
    }

    /// Number of enrolled nodes.
    pub(super) fn nodes(&self) -> Result<usize, TaskError> {
        let listed = self.command(&["node", "list", "-o", "id"]).output();
        let listed = listed.map_err(self.lost())?.stdout;
        Ok(String::from_utf8_lossy(&listed).lines().count())
    }

    /// Runs a command of which the output is shown.
    pub(super) fn show(&self, arguments: &[&str]) -> Result<(), TaskError> {
        say(format!("demo: controld ctl {}", arguments.join(" ")));
        let status = self.command(arguments).status().map_err(self.lost())?;
        if status.success() {
            return Ok(());
        }
        Err(TaskError::Ended {
            program: self.controld.display().to_string(),
            status,
        })
    }

    pub(super) fn project(&self) -> &str {
        &self.project
    }

    /// Suggestions to try.
    pub(super) fn invitation(&self) -> String {
        let (url, key, project) = (self.url(), &self.key, &self.project);
        let controld = self.controld.display();
        format!(
            "
demo: controld listens on {url}; its interface is shown at {url}/api/docs

  {url}/sign-in                       the pages: {EMAIL} with the password {PASSWORD:?}
  {url}/projects/{project}/rollouts   the rollout that stopped, and why

  export CONTROLD_URL={url} CONTROLD_API_KEY={key}
  {controld} ctl whoami                                    the key, and what it may do
  {controld} ctl node list
  {controld} ctl bundle list
  {controld} ctl rollout list
  {controld} ctl api-key list -o json
"
        )
    }

    pub(super) fn url(&self) -> &str {
        self.program.base_url()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.controld);
        command.arg("ctl").args(arguments);
        command.env("CONTROLD_URL", self.url());
        command.env("CONTROLD_API_KEY", &self.key);
        command
    }

    fn lost(&self) -> impl Fn(io::Error) -> TaskError {
        |source| TaskError::Start {
            program: self.controld.display().to_string(),
            source,
        }
    }

    fn ctl(&self, arguments: &[&str]) -> Result<String, TaskError> {
        let done = self.command(arguments).output().map_err(self.lost())?;
        let words: Vec<&str> = arguments.iter().copied().take(2).collect();
        let words = words.join(" ");
        if !done.status.success() {
            let errors = String::from_utf8_lossy(&done.stderr).into_owned();
            return Err(TaskError::Failed(format!("ctl {words}: {errors}")));
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
