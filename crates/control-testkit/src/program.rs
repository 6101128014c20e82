//! The real program, started as an operator does.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop, and says why"
)]

use crate::http::Client;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

const LISTENING: &str = "listening on ";
const SET_UP: &str = "set up at ";

/// A running `controld`. It is killed when dropped.
#[derive(Debug)]
pub struct Program {
    process: Child,
    base_url: String,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// Starts `controld` on a free port with these arguments, and waits until it listens.
    ///
    /// # Panics
    ///
    /// If it ends before.
    pub fn start<S: AsRef<OsStr>>(controld: &str, arguments: &[S]) -> Self {
        Self::start_with(controld, arguments, &[])
    }

    /// As [`Program::start`], with further variables in its environment.
    ///
    /// # Panics
    ///
    /// If it ends before.
    pub fn start_with<S: AsRef<OsStr>>(
        controld: &str,
        arguments: &[S],
        variables: &[(String, String)],
    ) -> Self {
        let variables = variables.iter().map(|(name, value)| (name, value));
        let mut command = Command::new(controld);
        command
            .envs(variables)
            .args(["--listen", "127.0.0.1:0"])
            .args(arguments);
        Self::launch(command)
    }

    /// As [`Program::start`], at the address that the arguments name.
    ///
    /// # Panics
    ///
    /// If it ends before.
    pub fn start_on<S: AsRef<OsStr>>(controld: &str, arguments: &[S]) -> Self {
        let mut command = Command::new(controld);
        command.args(arguments);
        Self::launch(command)
    }

    fn launch(mut command: Command) -> Self {
        // As in the unit file.
        let mut process = command
            .env("MALLOC_ARENA_MAX", "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("controld starts");
        let mut output = BufReader::new(process.stdout.take().expect("the stream is piped"));
        let line = line(&mut output);
        let base_url = line
            .strip_prefix(LISTENING)
            .unwrap_or_else(|| panic!("controld said {line:?}"))
            .to_owned();
        Self {
            process,
            base_url,
            output,
        }
    }

    /// The set-up link's secret, from the line after the first.
    ///
    /// # Panics
    ///
    /// If it prints none.
    pub fn setup_token(&mut self) -> String {
        let line = line(&mut self.output);
        let link = line.strip_prefix(SET_UP).expect("a set-up link");
        let (_, token) = link.split_once("token=").expect("the answer has a token");
        token.to_owned()
    }

    /// `http://127.0.0.1:PORT`
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// A client without a credential.
    pub fn client(&self) -> Client {
        Client::new(&self.base_url)
    }

    /// Asks it to stop, and waits.
    ///
    /// # Panics
    ///
    /// If it cannot be waited for.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.process.wait().expect("the process ends")
    }

    /// Asks it to read its files again.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// The process id, for [`kill`](crate::kill).
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    fn signal(&self, signal: Signal) {
        send(self.id(), signal);
    }

    /// Kills it at once, as a crash does.
    ///
    /// # Panics
    ///
    /// If it cannot be waited for.
    pub fn kill(&mut self) {
        self.process.kill().expect("the process runs");
        self.process.wait().expect("the process ends");
    }
}

/// Kills a program of another thread's, as a crash does.
///
/// # Panics
///
/// If it has ended and was waited for.
pub fn kill(pid: u32) {
    send(pid, Signal::KILL);
}

/// Refuses every write of a program to a file until [`lift_file_limit`], as a file system that has become read-only
/// does. The program has to ignore SIGXFSZ.
///
/// # Panics
///
/// If it has ended.
pub fn refuse_file_writes(pid: u32) {
    let nothing = Rlimit {
        current: Some(0),
        maximum: None,
    };
    prlimit(Some(raw(pid)), Resource::Fsize, nothing).expect("the process runs");
}

/// Lets the files of a program grow again that was started under a soft limit.
///
/// # Panics
///
/// If it has ended, or the hard limit is as low.
pub fn lift_file_limit(pid: u32) {
    let pid = raw(pid);
    let none = Rlimit {
        current: None,
        maximum: None,
    };
    prlimit(Some(pid), Resource::Fsize, none).expect("only the soft limit is low");
}

fn send(pid: u32, signal: Signal) {
    kill_process(raw(pid), signal).expect("the process runs");
}

fn raw(pid: u32) -> Pid {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.expect("the process id is valid")
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.process.kill().is_ok() {
            drop(self.process.wait());
        }
    }
}

fn line(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    line.trim_end().to_owned()
}
