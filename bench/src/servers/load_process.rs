//! Control of the load process.

use crate::servers::environment::Environment;
use proxy_load::command::{Command as LoadCommand, LoadProfile, Reply, Sample};
use std::io::{self, BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use xtask_kit::task_error::TaskError;

/// A running load process. It exits when its standard input closes, on drop.
pub(crate) struct LoadProcess {
    child: Child,
    orders: Option<ChildStdin>,
    replies: Lines<BufReader<ChildStdout>>,
}

impl LoadProcess {
    /// Starts the process on a core, with its upstream on a port.
    pub(crate) fn start(
        environment: &Environment,
        core: usize,
        backend_port: u16,
    ) -> Result<Self, TaskError> {
        let mut child = Command::new(&environment.load)
            .args([core.to_string(), backend_port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|source| TaskError::Start {
                program: "the load process".to_owned(),
                source,
            })?;
        let orders = child.stdin.take();
        let Some(replies) = child.stdout.take() else {
            return Err(broken(io::ErrorKind::BrokenPipe.into()));
        };
        let replies = BufReader::new(replies).lines();
        let mut load_process = Self {
            child,
            orders,
            replies,
        };
        load_process.line()?;
        Ok(load_process)
    }

    /// Runs a load to its end.
    ///
    /// # Errors
    /// The proxy refused connections, or did not respond to requests.
    pub(crate) fn run(&mut self, profile: LoadProfile) -> Result<Sample, TaskError> {
        self.begin(profile)?;
        self.finish()
    }

    /// Starts a load without waiting for its end.
    pub(crate) fn begin(&mut self, profile: LoadProfile) -> Result<(), TaskError> {
        self.send(&LoadCommand::Run(Box::new(profile)))
    }

    /// Waits for the end of the load, and returns its result.
    pub(crate) fn finish(&mut self) -> Result<Sample, TaskError> {
        match self.receive()? {
            Reply::Measured(sample) => Ok(*sample),
            Reply::Responded => Err(broken(io::ErrorKind::InvalidData.into())),
            Reply::Failed(why) => Err(TaskError::Failed(why)),
        }
    }

    /// Runs only the upstream for a while. Other commands must wait.
    pub(crate) fn respond(&mut self, time: Duration) -> Result<(), TaskError> {
        self.send(&LoadCommand::Respond(time))
    }

    fn send(&mut self, order: &LoadCommand) -> Result<(), TaskError> {
        let line = serde_json::to_string(order).map_err(json)?;
        let Some(orders) = &mut self.orders else {
            return Err(broken(io::ErrorKind::BrokenPipe.into()));
        };
        writeln!(orders, "{line}").map_err(broken)
    }

    fn receive(&mut self) -> Result<Reply, TaskError> {
        serde_json::from_str(&self.line()?).map_err(json)
    }

    fn line(&mut self) -> Result<String, TaskError> {
        if let Some(line) = self.replies.next() {
            return line.map_err(broken);
        }
        Err(TaskError::Ended {
            program: "the load process".to_owned(),
            status: self.child.wait().map_err(broken)?,
        })
    }
}

impl Drop for LoadProcess {
    fn drop(&mut self) {
        drop(self.orders.take());
        drop(self.child.wait());
    }
}

fn broken(source: io::Error) -> TaskError {
    TaskError::System {
        action: "speak with the load process",
        source,
    }
}

fn json(source: serde_json::Error) -> TaskError {
    TaskError::Json {
        program: "the load process",
        source,
    }
}
