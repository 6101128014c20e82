//! The folder in memory for the temporary files of tests.

use rustix::fs::{StatVfsMountFlags, statfs, statvfs};
use std::path::{Path, PathBuf};

/// The shared memory of Linux, a file system of the type tmpfs.
const FOLDER: &str = "/dev/shm";
/// `f_type` of tmpfs.
const TMPFS: i128 = 0x0102_1994;
/// Free space for all tests at once, which take some hundred megabytes. In containers the folder may have 64 MiB.
const MIN_FREE_BYTES: u64 = 4 << 30;

/// The folder, if it has room for all tests and programs can be run in it. Each test of a database copies a cluster
/// of 39 MB: that takes a second on a disk, and a fraction of it in memory.
pub(super) fn find() -> Option<PathBuf> {
    let kind = i128::from(statfs(FOLDER).ok()?.f_type);
    let space = statvfs(FOLDER).ok()?;
    let runs_programs = !space.f_flag.contains(StatVfsMountFlags::NOEXEC);
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    (kind == TMPFS && runs_programs && MIN_FREE_BYTES <= free).then(|| Path::new(FOLDER).to_owned())
}
