//! Unix sockets and the files they are found by.

use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The file of a listening Unix socket, removed when this is dropped, unless it is somebody else's by
/// then.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    inode: (u64, u64),
    kept: AtomicBool,
}

impl SocketFile {
    /// The one at `path` now.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let file = fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            inode: (file.dev(), file.ino()),
            kept: AtomicBool::new(false),
        })
    }

    /// Says whether it stays where it is: another process listens there, too.
    pub(crate) fn keep(&self, kept: bool) {
        self.kept.store(kept, Ordering::Relaxed);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let now = fs::symlink_metadata(&self.path);
        let ours = now.is_ok_and(|file| (file.dev(), file.ino()) == self.inode);
        if ours && !self.kept.load(Ordering::Relaxed) {
            // Gone is what it is to be.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Listens at `path`. Clients find the socket there from the moment it listens, not before; what a
/// process has left that is gone is replaced.
pub(crate) fn open(
    path: &Path,
    backlog: u32,
    mode: Option<u32>,
) -> io::Result<(Socket, SocketFile)> {
    let address = SockAddr::unix(path)?;
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::UNIX, kind, None)?;
    refuse_another(path, &address)?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let aside = path.with_file_name(format!(".{:x}-{number:x}", std::process::id()));
    let bound = socket.bind(&SockAddr::unix(&aside)?).and_then(|()| {
        // Dropped, and the file with it, if anything below fails.
        let file = SocketFile::at(&aside)?;
        if let Some(mode) = mode {
            fs::set_permissions(&aside, Permissions::from_mode(mode))?;
        }
        socket.listen(super::length(backlog))?;
        fs::rename(&aside, path)?;
        Ok(SocketFile {
            path: path.to_owned(),
            inode: file.inode,
            kept: AtomicBool::new(false),
        })
    });
    Ok((socket, bound?))
}

/// `error` in words an operator can act on.
pub(super) fn why(error: &io::Error) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind grows")]
    match error.kind() {
        io::ErrorKind::AddrInUse => "another process listens there".to_owned(),
        io::ErrorKind::AlreadyExists => "a file stands there that is no socket".to_owned(),
        io::ErrorKind::NotFound => "its folder does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied; the folder must be writable".to_owned()
        }
        io::ErrorKind::InvalidInput => "the path is too long for a socket".to_owned(),
        _ => error.to_string(),
    }
}

/// Whether nothing stands at `path` but what a process has left that is gone.
#[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind grows")]
fn refuse_another(path: &Path, address: &SockAddr) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let caller = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    let Err(error) = caller.connect(address) else {
        return Err(io::ErrorKind::AddrInUse.into());
    };
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Ok(()),
        // Who does not answer at once has too many callers already.
        io::ErrorKind::WouldBlock => Err(io::ErrorKind::AddrInUse.into()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn a_socket_is_found_by_its_file_until_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");

        let (socket, file) = open(&path, 16, Some(0o666)).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o666);
        assert_eq!(names(folder.path()), ["a.sock"]);

        drop((socket, file));
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn what_a_dead_process_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        drop(UnixListener::bind(&path).unwrap());

        let opened = open(&path, 16, None).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        drop(opened);
    }

    #[test]
    fn neither_a_living_socket_nor_a_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let living = UnixListener::bind(&path).unwrap();
        let refused = open(&path, 16, None).unwrap_err();
        assert_eq!(why(&refused), "another process listens there");
        drop(living);

        let text = folder.path().join("notes");
        fs::write(&text, "mine").unwrap();
        let refused = open(&text, 16, None).unwrap_err();
        assert_eq!(why(&refused), "a file stands there that is no socket");
        assert_eq!(fs::read(&text).unwrap(), b"mine");
    }

    #[test]
    fn a_file_that_another_process_has_replaced_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let (_socket, file) = open(&path, 16, None).unwrap();
        fs::remove_file(&path).unwrap();
        let other = UnixListener::bind(&path).unwrap();

        drop(file);
        assert!(UnixStream::connect(&path).is_ok());
        drop(other);
    }

    #[test]
    fn what_stands_in_the_way_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = open(&folder.path().join("none/a.sock"), 16, None).unwrap_err();
        assert_eq!(why(&nowhere), "its folder does not exist");
        let long = open(&folder.path().join("x".repeat(200)), 16, None).unwrap_err();
        assert_eq!(why(&long), "the path is too long for a socket");
    }
}
