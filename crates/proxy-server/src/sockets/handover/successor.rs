//! The old process's side of a handover.

use super::pass::{Passed, send};
use super::program::Program;
use super::protocol::{HEALTH_SNAPSHOT_VARIABLE, PREDECESSOR_VARIABLE, READY_BYTE};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

/// The task of an upgrade; aborting it kills the new process. It belongs to no configuration: a
/// reload waits for it.
pub(crate) type Candidate = JoinHandle<Result<Successor, UpgradeError>>;

/// The reason why an upgrade failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpgradeError {
    /// There is no program to start.
    #[error("this program does not know how it is started")]
    NoProgram,
    /// The process is the first of a container, which would end with it.
    #[error("this is process 1: all others would end with it")]
    FirstProcess,
    /// The new program cannot be started.
    #[error("cannot start {0}: {1}")]
    Start(String, io::Error),
    /// The sockets cannot be passed.
    #[error("cannot pass the sockets on: {0}")]
    Pass(io::Error),
    /// The new process exited, or closed its standard input.
    #[error("the new process ended before it served ({0})")]
    Ended(ExitStatus),
    /// The new process was not ready in time.
    #[error("the new process did not serve within {0:?}")]
    Late(Duration),
}

/// A new process that is ready and waits for the confirmation.
#[derive(Debug)]
pub(crate) struct Successor {
    process: Process,
    line: UnixStream,
}

impl Successor {
    pub(crate) fn id(&self) -> u32 {
        self.process.0.as_ref().map_or(0, Child::id)
    }

    /// Confirms that this process stops accepting.
    pub(crate) async fn confirm(mut self) -> Result<(), UpgradeError> {
        match self.line.write_u8(READY_BYTE).await {
            Ok(()) => {
                self.process.0 = None;
                Ok(())
            }
            Err(_) => Err(self.process.end().await),
        }
    }
}

/// Starts `program`, and passes `sockets` and `snapshot` to it.
pub(crate) fn begin(
    program: &Program,
    sockets: Vec<Passed>,
    snapshot: &str,
) -> Result<Candidate, UpgradeError> {
    if rustix::process::getpid().is_init() {
        return Err(UpgradeError::FirstProcess);
    }
    let path = program.path.display();
    let started = start(program, snapshot);
    let (process, line) = started.map_err(|error| UpgradeError::Start(path.to_string(), error))?;
    let timeout = program.timeout;
    tracing::info!(program = %path, id = process.0.as_ref().map(Child::id), "upgrade begins");
    Ok(tokio::spawn(wait(process, line, sockets, timeout)))
}

/// A process that is killed on drop.
#[derive(Debug)]
struct Process(Option<Child>);

impl Process {
    /// Kills the process and returns the reason of its failure.
    async fn end(mut self) -> UpgradeError {
        let Some(mut child) = self.0.take() else {
            return UpgradeError::Ended(ExitStatus::default());
        };
        // If the process is already exiting, its own status is more precise.
        drop(tokio::time::timeout(EXIT_TIMEOUT, ended(&mut child)).await);
        drop(child.kill());
        match tokio::task::spawn_blocking(move || child.wait()).await {
            Ok(Ok(status)) => UpgradeError::Ended(status),
            Ok(Err(error)) => UpgradeError::Pass(error),
            Err(error) => UpgradeError::Pass(error.into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // Kill and wait fail only if the process has already exited, which is the goal.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Time that a process has to exit after it closed its standard input.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

async fn ended(child: &mut Child) {
    while let Ok(None) = child.try_wait() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn start(program: &Program, snapshot: &str) -> io::Result<(Process, UnixStream)> {
    let Program {
        path,
        arguments,
        folder,
        timeout: _,
    } = program;
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let ours = UnixStream::from_std(ours)?;
    let mut command = Command::new(path);
    command
        .args(arguments)
        .env(PREDECESSOR_VARIABLE, std::process::id().to_string())
        .env(HEALTH_SNAPSHOT_VARIABLE, snapshot)
        .stdin(Stdio::from(OwnedFd::from(theirs)));
    // If the folder no longer exists, the new process inherits the current one.
    if folder.is_dir() {
        command.current_dir(folder);
    }
    let child = command.spawn()?;
    Ok((Process(Some(child)), ours))
}

async fn wait(
    process: Process,
    mut line: UnixStream,
    sockets: Vec<Passed>,
    timeout: Duration,
) -> Result<Successor, UpgradeError> {
    let talking = async {
        send(&mut line, &sockets).await?;
        line.read_u8().await
    };
    match tokio::time::timeout(timeout, talking).await {
        Ok(Ok(READY_BYTE)) => Ok(Successor { process, line }),
        Ok(Ok(_) | Err(_)) => {
            // So that it reads the end of the stream, too.
            drop(line);
            Err(process.end().await)
        }
        Err(_) => {
            drop(process);
            Err(UpgradeError::Late(timeout))
        }
    }
}
