//! Unix sockets and their files.

use super::backlog::queue_length;
use crate::runtime::disk_thread::DiskThread;
use rustix::fs::{Mode, OFlags};
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Number of names tried in a folder.
const MAX_NAMES_TRIED: u32 = 64;

/// Fate of a socket's file when its owner is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrop {
    /// Kept: another process listens there, too.
    Keep,
    /// Removed, unless another process has replaced it.
    Remove,
}

/// The file of a listening Unix socket, removed on drop unless another process has replaced it.
#[derive(Debug)]
pub(crate) struct SocketFile {
    file: FileIdentity,
    kept: AtomicBool,
    /// The thread that removes the file; unset, the dropping thread does.
    disk: OnceLock<DiskThread>,
}

/// A file by its path, and its identity when found.
#[derive(Clone, Debug)]
struct FileIdentity {
    path: PathBuf,
    inode: Inode,
}

/// A file's identity among all files of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inode {
    device: u64,
    number: u64,
}

impl From<&fs::Metadata> for Inode {
    fn from(file: &fs::Metadata) -> Self {
        Self {
            device: file.dev(),
            number: file.ino(),
        }
    }
}

impl FileIdentity {
    fn is_there(&self) -> bool {
        let now = fs::symlink_metadata(&self.path);
        now.is_ok_and(|file| Inode::from(&file) == self.inode)
    }

    /// Removes the file unless another one has replaced it.
    fn remove(&self) {
        if self.is_there() {
            // Fails only if the file does not exist, which is the goal.
            drop(fs::remove_file(&self.path));
        }
    }
}

impl SocketFile {
    /// The current file at `path`.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let file = fs::symlink_metadata(path)?;
        Ok(Self::new(path, Inode::from(&file)))
    }

    fn new(path: &Path, inode: Inode) -> Self {
        let path = path.to_owned();
        Self {
            file: FileIdentity { path, inode },
            kept: AtomicBool::new(false),
            disk: OnceLock::new(),
        }
    }

    /// Leaves the removal to `disk`: another thread that drops this does not wait for the disk.
    pub(crate) fn remove_on(&self, disk: &DiskThread) {
        self.disk.get_or_init(|| disk.clone());
    }

    /// Sets the mode. Safe against other users of the folder: the mode of another file at the path
    /// is never changed.
    fn permit(&self, mode: u32) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&self.file.path, flags, Mode::empty())?;
        let found = fs::File::from(handle);
        let file = found.metadata()?;
        if !file.file_type().is_socket() || Inode::from(&file) != self.file.inode {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        // A socket's file cannot be opened, only referred to by a descriptor.
        let name = format!("/proc/self/fd/{}", found.as_raw_fd());
        fs::set_permissions(name, Permissions::from_mode(mode))
    }

    /// Returns true if clients can find the socket by the file.
    pub(crate) fn is_there(&self) -> bool {
        self.file.is_there()
    }

    /// Sets whether drop keeps or removes the file.
    pub(crate) fn set_on_drop(&self, action: OnDrop) {
        self.kept.store(action == OnDrop::Keep, Ordering::Relaxed);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.kept.load(Ordering::Relaxed) {
            return;
        }
        match self.disk.get() {
            Some(disk) => {
                let file = self.file.clone();
                disk.leave(move || file.remove());
            }
            None => self.file.remove(),
        }
    }
}

/// Listens at `path`. The file appears there only when the socket listens; a stale file of an ended
/// process is replaced.
pub(crate) fn open(
    path: &Path,
    backlog: u32,
    mode: Option<u32>,
) -> io::Result<(Socket, SocketFile)> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::UNIX, kind, None)?;
    refuse_another(path, &SockAddr::unix(path)?)?;
    let aside = bind_aside(&socket, path)?;
    // On failure below, the drop removes the file.
    let file = SocketFile::at(&aside)?;
    if let Some(mode) = mode {
        file.permit(mode)?;
    }
    socket.listen(queue_length(backlog))?;
    fs::rename(&aside, path)?;
    file.set_on_drop(OnDrop::Keep);
    Ok((socket, SocketFile::new(path, file.file.inode)))
}

/// Binds an unused name next to `path`. The first name tried may exist after a crash of a process
/// with the same ID, such as the first process of a container.
fn bind_aside(socket: &Socket, path: &Path) -> io::Result<PathBuf> {
    let mut tried = 0;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let aside = path.with_file_name(format!(".{:x}-{number:x}", std::process::id()));
        match socket.bind(&SockAddr::unix(&aside)?) {
            Ok(()) => return Ok(aside),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tried < MAX_NAMES_TRIED => {
                tried += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// `error` with an instruction for operators.
pub(super) fn why(path: &Path, error: &io::Error) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind grows")]
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let path = path.display();
            format!("another process listens there; `ss -lxp src {path}` shows it")
        }
        io::ErrorKind::AlreadyExists => "the path is a file, not a socket".to_owned(),
        io::ErrorKind::NotFound => "its folder does not exist".to_owned(),
        io::ErrorKind::PermissionDenied if is_socket(path) => {
            "permission denied; the path is another user's socket".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "permission denied; the folder must be writable".to_owned()
        }
        io::ErrorKind::InvalidInput => "the path is too long for a socket".to_owned(),
        _ => error.to_string(),
    }
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

/// Fails if something other than a stale socket exists at `path`.
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
        // A full accept queue means that a process listens there.
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
    fn the_disk_thread_removes_the_file_and_the_drop_does_not_wait_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let disk = DiskThread::start().unwrap();
        let (answer, hung) = std::sync::mpsc::channel::<()>();
        disk.leave(move || hung.recv().unwrap_or_default());

        let (socket, file) = open(&path, 16, None).unwrap();
        file.remove_on(&disk);
        drop((socket, file));
        assert_eq!(names(folder.path()), ["a.sock"], "the disk hangs");

        drop(answer);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.build().unwrap();
        runtime.block_on(disk.run(|| ())).unwrap();
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn the_socket_of_a_dead_process_is_replaced() {
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
        assert!(why(&path, &refused).starts_with("another process listens there"));
        drop(living);

        let text = folder.path().join("notes");
        fs::write(&text, "mine").unwrap();
        let refused = open(&text, 16, None).unwrap_err();
        assert_eq!(why(&text, &refused), "the path is a file, not a socket");
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
    fn names_that_a_killed_process_of_the_same_number_left_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let next = NEXT.load(Ordering::Relaxed);
        // Other tests use numbers concurrently, but not that many.
        for number in next..next + MAX_NAMES_TRIED / 2 {
            let left = format!(".{:x}-{number:x}", std::process::id());
            drop(UnixListener::bind(folder.path().join(left)).unwrap());
        }

        let opened = open(&path, 16, None).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        drop(opened);
    }

    #[test]
    fn the_mode_of_another_file_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, secret) = (folder.path().join("a.sock"), folder.path().join("secret"));
        fs::write(&secret, "mine").unwrap();
        fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        let _listener = UnixListener::bind(&path).unwrap();
        let file = SocketFile::at(&path).unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&secret, &path).unwrap();

        assert!(file.permit(0o666).is_err());
        assert_eq!(fs::metadata(&secret).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_obstacle_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let fault_of = |name: &str| {
            let path = folder.path().join(name);
            why(&path, &open(&path, 16, None).unwrap_err())
        };
        assert_eq!(fault_of("none/a.sock"), "its folder does not exist");
        assert_eq!(
            fault_of(&"x".repeat(200)),
            "the path is too long for a socket"
        );
    }
}
