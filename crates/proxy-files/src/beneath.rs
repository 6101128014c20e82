//! Opening of files beneath a folder, and nowhere else.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat, openat2};
use rustix::io::Errno;
use std::path::{Component, Path};

/// For reading; opening a pipe does not block.
const READ_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// For a folder within a path.
const DIRECTORY_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Maximum number of resolutions of a name, repeated if a folder on its path was renamed meanwhile.
const MAX_ATTEMPTS: u32 = 4;

/// Opens the root folder. It is resolved for each request, so that a link can be switched to
/// another release.
pub(crate) fn root(path: &Path) -> Result<OwnedFd, Errno> {
    open(path, DIRECTORY_FLAGS, Mode::empty())
}

/// Opens `name` for reading. Links are followed if they are relative and stay beneath `root`.
pub(crate) fn file(root: &OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
    let name = if name.as_os_str().is_empty() {
        Path::new(".")
    } else {
        name
    };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut attempts = 0;
    loop {
        attempts += 1;
        match openat2(root, name, READ_FLAGS, Mode::empty(), resolve) {
            Err(Errno::AGAIN) if attempts < MAX_ATTEMPTS => {}
            // An old kernel, or a sandbox without `openat2`.
            Err(Errno::NOSYS | Errno::PERM) => return without_links(root, name),
            opened => return opened,
        }
    }
}

/// Like [`file`], for kernels without resolution beneath a folder: follows no link at all.
fn without_links(root: &OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
    let mut at = openat(root, ".", DIRECTORY_FLAGS, Mode::empty())?;
    let mut components = name.components().peekable();
    while let Some(component) = components.next() {
        let segment = match component {
            Component::Normal(segment) => Path::new(segment),
            Component::CurDir => Path::new("."),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(Errno::XDEV);
            }
        };
        if components.peek().is_none() {
            return openat(&at, segment, READ_FLAGS | OFlags::NOFOLLOW, Mode::empty());
        }
        at = openat(
            &at,
            segment,
            DIRECTORY_FLAGS | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
    }
    Err(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn without_openat2_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root_path = folder.path().join("base");
        fs::create_dir_all(root_path.join("a")).unwrap();
        fs::write(root_path.join("a/file"), "x").unwrap();
        symlink("a", root_path.join("link")).unwrap();
        symlink("a/file", root_path.join("last")).unwrap();
        let root = root(&root_path).unwrap();

        assert!(without_links(&root, Path::new("a/file")).is_ok());
        assert!(without_links(&root, Path::new(".")).is_ok());
        for name in ["link/file", "last", "../base/a/file", "/etc/passwd"] {
            assert!(without_links(&root, Path::new(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn openat2_follows_links_that_stay_beneath() {
        let folder = tempfile::tempdir().unwrap();
        let root_path = folder.path().join("base");
        fs::create_dir_all(root_path.join("a")).unwrap();
        fs::write(root_path.join("a/file"), "x").unwrap();
        fs::write(folder.path().join("secret"), "x").unwrap();
        symlink("a/file", root_path.join("inside")).unwrap();
        symlink("../secret", root_path.join("outside")).unwrap();
        symlink("/etc", root_path.join("etc")).unwrap();
        let root = root(&root_path).unwrap();

        assert!(file(&root, Path::new("inside")).is_ok());
        for name in ["outside", "etc/passwd", "../secret"] {
            let error = file(&root, Path::new(name)).unwrap_err();
            assert!(matches!(error, Errno::XDEV | Errno::LOOP), "{name}");
        }
    }
}
