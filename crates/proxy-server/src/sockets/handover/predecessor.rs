//! The new process's side of a handover.

use super::health_snapshot::HealthSnapshot;
use super::pass::{Passed, receive};
use super::protocol::{HEALTH_SNAPSHOT_VARIABLE, PREDECESSOR_VARIABLE, READY_BYTE};
use rustix::process::getppid;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Maximum time for receiving the sockets of the predecessor.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The process to take over from.
#[derive(Debug)]
pub(crate) struct Predecessor {
    line: UnixStream,
    /// The states of the old process's targets when it started this process.
    pub(crate) snapshot: HealthSnapshot,
    pub(crate) id: u32,
}

impl Predecessor {
    /// The predecessor that started this process, if there is one, and the sockets that it passes.
    pub(crate) fn find() -> io::Result<Option<(Self, Vec<Passed>)>> {
        // The variable applies to this process only if its parent set it.
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
        let snapshot = std::env::var(HEALTH_SNAPSHOT_VARIABLE).unwrap_or_default();
        let predecessor = Self {
            line,
            snapshot: HealthSnapshot::decode(&snapshot),
            id,
        };
        Ok(Some((predecessor, passed)))
    }

    /// Reports readiness, and waits without a limit for the confirmation: the predecessor serves
    /// meanwhile, and may kill an unconfirmed successor.
    pub(crate) async fn relieve(self) {
        let talking = async {
            self.line.set_nonblocking(true)?;
            let mut line = tokio::net::UnixStream::from_std(self.line)?;
            line.write_u8(READY_BYTE).await?;
            line.read_u8().await
        };
        match talking.await {
            Ok(READY_BYTE) => tracing::info!(from = self.id, "took over"),
            // The predecessor has exited; it would have killed this process to continue serving.
            Ok(_) | Err(_) => {
                tracing::warn!(from = self.id, "took over from a process that has ended");
            }
        }
    }
}
