//! The new process's side: whom it takes over from.

use super::pass::{Passed, receive};
use super::{PREDECESSOR_VARIABLE, READY_BYTE};
use rustix::process::getppid;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The longest that the process before may take to send its sockets.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The process that this one takes over from.
#[derive(Debug)]
pub(crate) struct Predecessor {
    line: UnixStream,
    /// Its number.
    pub(crate) id: u32,
}

impl Predecessor {
    /// The process that has started this one to take over, if one has, and the sockets that it passes.
    pub(crate) fn find() -> io::Result<Option<(Self, Vec<Passed>)>> {
        // What the variable says is for this process only if its parent has said it.
        let parent = getppid().map(|parent| parent.as_raw_nonzero().get().to_string());
        let named = std::env::var(PREDECESSOR_VARIABLE).ok();
        let Some(id) = named.filter(|named| Some(named) == parent.as_ref()) else {
            return Ok(None);
        };
        let mut line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let nothing = std::fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        line.set_read_timeout(Some(RECEIVE_TIMEOUT))?;
        let passed = receive(&mut line)?;
        let id = id.parse().unwrap_or_default();
        Ok(Some((Self { line, id }, passed)))
    }

    /// Says that this process is ready to serve, and waits until the one before has heard, however long
    /// that takes: it serves meanwhile, and whoever it has not answered it may still end.
    pub(crate) async fn relieve(self) {
        let talking = async {
            self.line.set_nonblocking(true)?;
            let mut line = tokio::net::UnixStream::from_std(self.line)?;
            line.write_u8(READY_BYTE).await?;
            line.read_u8().await
        };
        match talking.await {
            Ok(READY_BYTE) => tracing::info!(from = self.id, "took over"),
            // It would have ended this process if it meant to go on.
            Ok(_) | Err(_) => {
                tracing::warn!(from = self.id, "took over from a process that is gone");
            }
        }
    }
}
