//! An agent as a process.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::park_timeout;
use std::time::Duration;
use tempfile::TempDir;

/// Polls for the socket before an agent's start has failed: a rule set loads for a second or two.
const MAX_POLLS: usize = 3_000;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A running agent, killed when dropped.
pub(crate) struct AgentProcess {
    child: Child,
    folder: TempDir,
}

impl AgentProcess {
    /// A program of this package.
    pub(crate) fn program(path: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::start(Command::new(path), arguments, folder)
    }

    /// A Python program under `examples/agents`.
    pub(crate) fn python(script: &str, arguments: &[&str]) -> Self {
        Self::python_in(script, arguments, tempfile::tempdir().unwrap())
    }

    /// With a folder that the test has filled.
    pub(crate) fn python_in(script: &str, arguments: &[&str], folder: TempDir) -> Self {
        let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents");
        let mut command = Command::new("python3");
        command.arg("-B").arg(agents.join(script));
        Self::start(command, arguments, folder)
    }

    fn start(mut command: Command, arguments: &[&str], folder: TempDir) -> Self {
        let socket = folder.path().join("agent.sock");
        let child = command.arg(&socket).args(arguments).spawn().unwrap();
        let agent = Self { child, folder };
        agent.wait_until_it_listens();
        agent
    }

    fn wait_until_it_listens(&self) {
        for _ in 0..MAX_POLLS {
            if UnixStream::connect(self.socket()).is_ok() {
                return;
            }
            park_timeout(POLL_INTERVAL);
        }
        panic!("no agent listens at {}", self.socket().display());
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("agent.sock")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Asks the process to end, as a service manager does.
    pub(crate) fn terminate(&self) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(status.success());
    }

    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
