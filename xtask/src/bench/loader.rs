//! The load process as its orders see it.

use super::arena::Arena;
use super::order::{Drive, Order, Reply, Sample};
use crate::task_error::TaskError;
use std::io::{self, BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A load process. It ends when this is dropped and its orders end.
pub(super) struct Loader {
    child: Child,
    orders: Option<ChildStdin>,
    replies: Lines<BufReader<ChildStdout>>,
}

impl Loader {
    /// Starts one on a core, with its upstream on a port.
    pub(super) fn start(arena: &Arena, core: usize, backend_port: u16) -> Result<Self, TaskError> {
        let mut child = Command::new(&arena.load)
            .args(["load", "--core", &core.to_string()])
            .args(["--backend-port", &backend_port.to_string()])
            .env("CARGO_MANIFEST_DIR", arena.root().join("xtask"))
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
        let mut loader = Self {
            child,
            orders,
            replies,
        };
        loader.line()?;
        Ok(loader)
    }

    /// Drives a proxy.
    ///
    /// # Errors
    /// The proxy did not take connections, or left requests unanswered.
    pub(super) fn drive(&mut self, drive: Drive) -> Result<Sample, TaskError> {
        self.begin(drive)?;
        self.finish()
    }

    /// Begins to drive a proxy.
    pub(super) fn begin(&mut self, drive: Drive) -> Result<(), TaskError> {
        self.tell(&Order::Drive(Box::new(drive)))
    }

    /// Waits for the end of what was begun.
    pub(super) fn finish(&mut self) -> Result<Sample, TaskError> {
        match self.hear()? {
            Reply::Driven(sample) => Ok(*sample),
            Reply::Responded => Err(broken(io::ErrorKind::InvalidData.into())),
            Reply::Failed(why) => Err(TaskError::Failed(why)),
        }
    }

    /// Lets it answer requests for a while; it takes no other order meanwhile.
    pub(super) fn respond(&mut self, time: Duration) -> Result<(), TaskError> {
        self.tell(&Order::Respond(time))
    }

    fn tell(&mut self, order: &Order) -> Result<(), TaskError> {
        let line = serde_json::to_string(order).map_err(json)?;
        let Some(orders) = &mut self.orders else {
            return Err(broken(io::ErrorKind::BrokenPipe.into()));
        };
        writeln!(orders, "{line}").map_err(broken)
    }

    fn hear(&mut self) -> Result<Reply, TaskError> {
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

impl Drop for Loader {
    fn drop(&mut self) {
        drop(self.orders.take());
        drop(self.child.wait());
    }
}

fn broken(source: io::Error) -> TaskError {
    TaskError::System {
        deed: "speak with the load process",
        source,
    }
}

fn json(source: serde_json::Error) -> TaskError {
    TaskError::Json {
        program: "the load process",
        source,
    }
}
