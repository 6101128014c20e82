//! Agents as processes of their own.

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::park_timeout;
use std::time::Duration;
use tempfile::TempDir;

/// Attempts to reach a socket before an agent counts as broken.
const MAX_CONNECTS: usize = 3_000;
/// Pause between two attempts to reach a socket.
const CONNECT_INTERVAL: Duration = Duration::from_millis(10);
/// The environment of foreign servers, in the target folder.
const FOREIGN_PYTHON: &str = "agent-servers/bin/python3";

/// A running agent, killed when dropped.
#[derive(Debug)]
pub struct AgentProcess {
    program: PathBuf,
    arguments: Vec<OsString>,
    child: Child,
    folder: TempDir,
}

impl AgentProcess {
    /// A Python program of `examples/agents`. It gets the path of its socket, and `arguments`.
    #[must_use]
    #[track_caller]
    pub fn example(script: &str, arguments: &[&str]) -> Self {
        let own = arguments.iter().map(OsString::from).collect();
        Self::python(Path::new("python3"), &example(script), own, folder())
    }

    /// A Python program of `examples/agents`. Its arguments are the path of its socket, and of a
    /// folder with `files`, which are pairs of a name and a text.
    #[must_use]
    #[track_caller]
    pub fn example_with_files(script: &str, files: &[(&str, &str)]) -> Self {
        let folder = folder();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("the file is writable");
        }
        let own = vec![folder.path().into()];
        Self::python(Path::new("python3"), &example(script), own, folder)
    }

    /// A program of `fixtures/agents` on servers that are not ours; `None` if they are not installed,
    /// which CI does not pass.
    #[must_use]
    #[track_caller]
    pub fn foreign(script: &str) -> Option<Self> {
        let python = beside_tests(FOREIGN_PYTHON)?;
        let fixtures = workspace().join("fixtures/agents");
        let script = fixtures.join(script);
        Some(Self::python(&python, &script, Vec::new(), folder()))
    }

    /// A program of this workspace, which its tests have built; `None` if they have not, which CI does
    /// not pass. It gets the path of its socket, and `arguments`.
    #[must_use]
    #[track_caller]
    pub fn built(program: &str, arguments: &[&str]) -> Option<Self> {
        let folder = folder();
        let mut all = vec![socket_in(&folder).into_os_string()];
        all.extend(arguments.iter().map(OsString::from));
        Some(Self::start(beside_tests(program)?, all, folder))
    }

    #[track_caller]
    fn python(python: &Path, script: &Path, own: Vec<OsString>, folder: TempDir) -> Self {
        let mut arguments = vec!["-B".into(), script.into(), socket_in(&folder).into()];
        arguments.extend(own);
        Self::start(python.to_owned(), arguments, folder)
    }

    #[track_caller]
    fn start(program: PathBuf, arguments: Vec<OsString>, folder: TempDir) -> Self {
        let child = spawn(&program, &arguments, &socket_in(&folder));
        Self {
            program,
            arguments,
            child,
            folder,
        }
    }

    /// The path of its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        socket_in(&self.folder)
    }

    /// Kills the process.
    pub fn stop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Restarts the agent, with the same socket and files.
    #[track_caller]
    pub fn start_again(&mut self) {
        self.child = spawn(&self.program, &self.arguments, &self.socket());
    }

    /// Stops the process without closing its connections.
    #[track_caller]
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes the process.
    #[track_caller]
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    #[track_caller]
    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let sent = id.map(|id| kill_process(id, signal));
        assert!(matches!(sent, Some(Ok(()))), "the agent runs");
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

#[track_caller]
fn spawn(program: &Path, arguments: &[OsString], socket: &Path) -> Child {
    let child = Command::new(program).args(arguments).spawn();
    let child = child.expect("the agent's program can be started");
    let listens = (0..MAX_CONNECTS).any(|_| {
        park_timeout(CONNECT_INTERVAL);
        UnixStream::connect(socket).is_ok()
    });
    assert!(listens, "no agent listens at {}", socket.display());
    child
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder is created")
}

fn socket_in(folder: &TempDir) -> PathBuf {
    folder.path().join("agent.sock")
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn example(script: &str) -> PathBuf {
    workspace().join("examples/agents").join(script)
}

/// The file `program` in one of the folders above the test's program: the profile's or the target's.
#[track_caller]
fn beside_tests(program: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().expect("a program knows its path");
    let places = own.ancestors().map(|folder| folder.join(program));
    let found = places.into_iter().find(|place| place.is_file());
    if found.is_none() {
        let why = format!("skipped: {program} is not there: run `cargo xtask setup`\n");
        assert!(std::env::var_os("CI").is_none(), "{why}");
        // Captured only by `eprintln`: the reader of the run is to see it.
        drop(std::io::stderr().write_all(why.as_bytes()));
    }
    found
}
