//! The old process's side: whom it hands over to.

use super::pass::{Passed, send};
use super::program::Program;
use super::{PREDECESSOR_VARIABLE, READY_BYTE};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

/// A new process on its way to take over; aborted, it is ended.
pub(crate) type Candidate = JoinHandle<Result<Successor, UpgradeError>>;

/// Why nobody took over.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpgradeError {
    /// There is nothing that could be started.
    #[error("this program does not know how it is started")]
    NoProgram,
    /// A container ends with its first process.
    #[error("this is process 1: all others would end with it")]
    FirstProcess,
    /// The new program cannot be started.
    #[error("cannot start {0}: {1}")]
    Start(String, io::Error),
    /// The new process could not be given the sockets.
    #[error("cannot pass the sockets on: {0}")]
    Pass(io::Error),
    /// The new process ended, or closed its standard input.
    #[error("the new process ended before it served ({0})")]
    Ended(ExitStatus),
    /// The new process took too long.
    #[error("the new process did not serve within {0:?}")]
    Late(Duration),
}

/// A new process that serves, and waits to be told that it was heard.
#[derive(Debug)]
pub(crate) struct Successor {
    process: Process,
    line: UnixStream,
}

impl Successor {
    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.process.0.as_ref().map_or(0, Child::id)
    }

    /// Tells it that this process takes no more connections from now on.
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

/// Starts `program` and passes `sockets` on to it.
pub(crate) fn begin(program: &Program, sockets: Vec<Passed>) -> Result<Candidate, UpgradeError> {
    if rustix::process::getpid().is_init() {
        return Err(UpgradeError::FirstProcess);
    }
    let path = program.path.display();
    let (process, line) =
        start(program).map_err(|error| UpgradeError::Start(path.to_string(), error))?;
    let timeout = program.timeout;
    tracing::info!(program = %path, id = process.0.as_ref().map(Child::id), "upgrade begins");
    Ok(tokio::spawn(wait(process, line, sockets, timeout)))
}

/// A process that is ended when this is dropped.
#[derive(Debug)]
struct Process(Option<Child>);

impl Process {
    /// Ends it and tells how it ended.
    async fn end(mut self) -> UpgradeError {
        let Some(mut child) = self.0.take() else {
            return UpgradeError::Ended(ExitStatus::default());
        };
        // It may be on its way out already, and then its status says more.
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
            // Both fail only if it has ended already, which is what is wanted.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// How long a process that closed its standard input may take to end by itself.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

async fn ended(child: &mut Child) {
    while let Ok(None) = child.try_wait() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn start(program: &Program) -> io::Result<(Process, UnixStream)> {
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
        .stdin(Stdio::from(OwnedFd::from(theirs)));
    // Where the folder is gone, the new process is where this one is.
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
            // So that it sees the end, too.
            drop(line);
            Err(process.end().await)
        }
        Err(_) => {
            drop(process);
            Err(UpgradeError::Late(timeout))
        }
    }
}
