//! The socket that an agent listens on.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// Owner and group may connect: the proxy's user is made a member of the agent's group.
const SOCKET_MODE: u32 = 0o660;

/// A listener; its file is removed with it.
pub(crate) struct AgentSocket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
}

impl AgentSocket {
    /// Listens at `path`. The socket of an agent that has ended is replaced.
    ///
    /// # Errors
    /// Another agent listens there, or the path is not a socket.
    pub(crate) async fn bind(path: &Path) -> io::Result<Self> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                remove_stale(path, error).await?;
                UnixListener::bind(path)?
            }
            bound => bound?,
        };
        fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
        Ok(Self {
            listener,
            path: path.to_path_buf(),
        })
    }
}

impl Drop for AgentSocket {
    fn drop(&mut self) {
        // The next start replaces a file that could not be removed.
        drop(fs::remove_file(&self.path));
    }
}

async fn remove_stale(path: &Path, in_use: io::Error) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path)?.file_type().is_socket();
    let refused = |error: io::Error| error.kind() == ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).await.is_err_and(refused) {
        return fs::remove_file(path);
    }
    Err(in_use)
}
