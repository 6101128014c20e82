//! Agents as processes of their own.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::park_timeout;
use std::time::Duration;
use tempfile::TempDir;

/// Looks for the socket before an agent is given up.
const MAX_LOOKS: usize = 3_000;
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// The environment of foreign servers, in the target folder.
const FOREIGN_PYTHON: &str = "agent-servers/bin/python3";

/// A running agent, killed when dropped.
pub(crate) struct AgentProcess {
    child: Child,
    folder: TempDir,
}

impl AgentProcess {
    /// A Python program of `examples/agents`. It gets the path of its socket, and these arguments.
    pub(crate) fn example(script: &str, arguments: &[&str]) -> Self {
        Self::python(Path::new("python3"), &example(script), arguments)
    }

    /// The same with a folder of these files as its last argument.
    pub(crate) fn example_with_files(script: &str, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let mut command = Command::new("python3");
        command.arg("-B").arg(example(script));
        command.arg(socket_in(&folder)).arg(folder.path());
        Self::start(command, folder)
    }

    /// A program of `fixtures/agents` on servers that are not ours; `None` if they are not installed,
    /// which CI does not pass.
    pub(crate) fn foreign(script: &str) -> Option<Self> {
        let python = beside_tests(FOREIGN_PYTHON)?;
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents");
        Some(Self::python(&python, &fixtures.join(script), &[]))
    }

    /// A program of this workspace, which its tests have built; `None` if they have not, which CI does
    /// not pass. It gets the path of its socket, and these arguments.
    pub(crate) fn built(program: &str, arguments: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(beside_tests(program)?);
        command.arg(socket_in(&folder)).args(arguments);
        Some(Self::start(command, folder))
    }

    fn python(python: &Path, script: &Path, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(python);
        command.arg("-B").arg(script);
        command.arg(socket_in(&folder)).args(arguments);
        Self::start(command, folder)
    }

    fn start(mut command: Command, folder: TempDir) -> Self {
        let child = command.spawn().unwrap();
        let agent = Self { child, folder };
        let socket = agent.socket();
        let listens = (0..MAX_LOOKS).any(|_| {
            park_timeout(LOOK_INTERVAL);
            UnixStream::connect(&socket).is_ok()
        });
        assert!(listens, "no agent listens at {}", socket.display());
        agent
    }

    pub(crate) fn socket(&self) -> PathBuf {
        socket_in(&self.folder)
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn socket_in(folder: &TempDir) -> PathBuf {
    folder.path().join("agent.sock")
}

fn example(script: &str) -> PathBuf {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents");
    agents.join(script)
}

/// What lies in one of the folders above the test's program: those of the profile and of the target.
fn beside_tests(program: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().unwrap();
    let places = own.ancestors().map(|folder| folder.join(program));
    let found = places.into_iter().find(|place| place.is_file());
    if found.is_none() {
        let why = format!("skipped: {program} is not there: run `cargo xtask setup`\n");
        assert!(std::env::var_os("CI").is_none(), "{why}");
        // Captured only by `eprintln`: the reader of the run is to see it.
        drop(std::io::Write::write_all(
            &mut std::io::stderr(),
            why.as_bytes(),
        ));
    }
    found
}
