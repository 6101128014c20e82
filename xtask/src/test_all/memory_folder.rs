//! Choice of a memory-backed folder for temporary files of tests.

use rustix::fs::{StatVfsMountFlags, statfs, statvfs};
use std::path::{Path, PathBuf};

/// Shared memory of Linux, usually a tmpfs.
const FOLDER: &str = "/dev/shm";
/// File system type of tmpfs in `statfs`.
const TMPFS: i128 = 0x0102_1994;
/// Free space that is required for all tests together, which use some hundred megabytes. Containers
/// often limit the folder to 64 MiB.
const MIN_FREE_BYTES: u64 = 4 << 30;

/// Returns the folder if it has enough space, and programs in it can be executed. Each database
/// test copies a cluster of 39 MB, which takes a second on a disk, and much less in memory.
pub(super) fn find() -> Option<PathBuf> {
    let kind = i128::from(statfs(FOLDER).ok()?.f_type);
    let space = statvfs(FOLDER).ok()?;
    let runs_programs = !space.f_flag.contains(StatVfsMountFlags::NOEXEC);
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    (kind == TMPFS && runs_programs && MIN_FREE_BYTES <= free).then(|| Path::new(FOLDER).to_owned())
}
