//! Starting of the real binary.

use crate::proxyd::Proxyd;
use crate::proxyd::configuration::with_admin;
use crate::proxyd::log::Log;
use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Socket activation as by systemd: descriptor 3, and the receiving process.
const ACTIVATE: &str = "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\" 3<&0 </dev/null";

/// A proxyd to be started.
#[derive(Debug)]
pub struct Launch {
    binary: PathBuf,
    /// `None` starts the binary without a configuration.
    kdl: Option<String>,
    folder: TempDir,
    env: Vec<(OsString, OsString)>,
    socket: Option<OwnedFd>,
    hold_stdout: bool,
    stderr: Option<OwnedFd>,
}

impl Launch {
    /// The binary with this configuration, in a folder of its own. A configuration without an
    /// `admin` block gets one with a free port.
    #[must_use]
    pub fn new(binary: impl AsRef<Path>, kdl: &str) -> Self {
        Self {
            kdl: Some(with_admin(kdl)),
            ..Self::without_configuration(binary)
        }
    }

    /// The binary without a configuration.
    #[must_use]
    pub fn without_configuration(binary: impl AsRef<Path>) -> Self {
        Self {
            binary: binary.as_ref().to_owned(),
            kdl: None,
            folder: tempfile::tempdir().expect("a temporary folder is created"),
            env: Vec::new(),
            socket: None,
            hold_stdout: false,
            stderr: None,
        }
    }

    /// Sets an environment variable of the process.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Passes this socket, a listening one or one of UDP, as systemd does.
    #[must_use]
    pub fn socket(mut self, socket: impl Into<OwnedFd>) -> Self {
        self.socket = Some(socket.into());
        self
    }

    /// Leaves standard output unread until
    /// [`Proxyd::read_stdout`](crate::proxyd::Proxyd::read_stdout).
    #[must_use]
    pub fn hold_stdout(mut self) -> Self {
        self.hold_stdout = true;
        self
    }

    /// Sets its standard error. Its events are not collected then, and [`Launch::start`] would wait
    /// for them in vain: use [`Launch::spawn`].
    #[must_use]
    pub fn stderr(mut self, output: impl Into<OwnedFd>) -> Self {
        self.stderr = Some(output.into());
        self
    }

    /// The folder of the configuration.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it and waits until it listens.
    #[must_use]
    #[track_caller]
    pub fn start(self) -> Proxyd {
        let listeners = match &self.kdl {
            Some(kdl) => kdl.matches("listener \"").count(),
            None => 1,
        };
        let mut proxyd = self.spawn();
        proxyd.wait_for_listeners(listeners);
        proxyd
    }

    /// Starts it without waiting.
    #[must_use]
    pub fn spawn(self) -> Proxyd {
        let config = self.folder.path().join("proxyd.kdl");
        let mut command = match self.socket {
            None => {
                let mut command = Command::new(&self.binary);
                command.stdin(Stdio::null());
                command
            }
            Some(socket) => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", ACTIVATE]).arg(&self.binary);
                command.stdin(socket);
                command
            }
        };
        for name in [
            "RUST_LOG",
            "NOTIFY_SOCKET",
            "PROXYD_CONFIG",
            "LISTEN_FDS",
            "LISTEN_PID",
        ] {
            command.env_remove(name);
        }
        if let Some(kdl) = &self.kdl {
            fs::write(&config, kdl).expect("the file is writable");
            command.arg("--config").arg(&config);
        }
        command
            .envs(self.env)
            .current_dir(self.folder.path())
            .stdout(Stdio::piped())
            .stderr(self.stderr.map_or_else(Stdio::piped, Stdio::from));
        let mut child = command.spawn().expect("the binary can be started");
        let (stdout, stderr) = (Log::default(), Log::default());
        if let Some(output) = child.stderr.take() {
            stderr.follow(output);
        }
        let proxyd = Proxyd::new(child, self.folder, config, (stdout, stderr));
        if !self.hold_stdout {
            return proxyd.reading();
        }
        proxyd
    }
}

impl Proxyd {
    /// Starts the binary with this configuration and waits until it listens.
    #[must_use]
    #[track_caller]
    pub fn start(binary: impl AsRef<Path>, kdl: &str) -> Self {
        Launch::new(binary, kdl).start()
    }
}
