//! Detection of the node's data folder under any path that resolves to it.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Levels of folders below the data folder that are known: `active` and `bundles`, and a bundle of
/// each.
const MAX_LEVELS: usize = 2;
/// The mounts that this process sees, one per line.
const MOUNTS: &str = "/proc/self/mountinfo";
/// Position of the mount point among the fields of a line.
const MOUNT_POINT: usize = 4;
/// Digits of an octal escape.
const ESCAPE_LEN: usize = 3;
const OCTAL: u32 = 8;

/// A folder's device and number, equal for all its names: links, mounts, other cases of letters.
type FolderId = (u64, u64);

/// The data folder. Its files are secrets: the node's key, its token, private keys.
#[derive(Debug)]
pub(crate) struct DataFolder {
    /// The data folder and the folders in it, down to [`MAX_LEVELS`].
    inside: HashSet<FolderId>,
    /// The folders that contain the data folder.
    above: HashSet<FolderId>,
}

impl DataFolder {
    pub(crate) fn new(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.into());
        let mut inside: HashSet<FolderId> = id(&path).into_iter().collect();
        add_folders(&path, MAX_LEVELS, &mut inside);
        let above = path.ancestors().skip(1).filter_map(id);
        Self {
            inside,
            above: above.collect(),
        }
    }

    /// Returns true if a file of the data folder has a path at or below `folder`, which is
    /// canonical.
    pub(crate) fn is_reached_from(&self, folder: &Path) -> bool {
        self.is_reached_by(folder, &mounts())
    }

    /// Like [`Self::is_reached_from`], with the text of [`MOUNTS`].
    fn is_reached_by(&self, folder: &Path, mounts: &[u8]) -> bool {
        let is_inside = |folder: &Path| id(folder).is_some_and(|id| self.inside.contains(&id));
        let is_above = |folder: &Path| id(folder).is_some_and(|id| self.above.contains(&id));
        folder.ancestors().any(is_inside)
            || is_above(folder)
            || mounts_below(folder, mounts).any(|mount| is_inside(&mount) || is_above(&mount))
    }
}

fn id(folder: &Path) -> Option<FolderId> {
    let found = fs::metadata(folder).ok()?;
    Some((found.dev(), found.ino()))
}

fn add_folders(folder: &Path, levels: usize, found: &mut HashSet<FolderId>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        if levels > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(id(&entry.path()));
            add_folders(&entry.path(), levels - 1, found);
        }
    }
}

/// The text of [`MOUNTS`], in bytes: a path need not be UTF-8.
fn mounts() -> Vec<u8> {
    fs::read(MOUNTS).unwrap_or_default()
}

/// The mount points below `folder`, from which a part of another folder may be reached.
fn mounts_below(folder: &Path, mounts: &[u8]) -> impl Iterator<Item = PathBuf> {
    let lines = mounts.split(|byte| *byte == b'\n');
    let points = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(MOUNT_POINT));
    points
        .map(unescaped)
        .filter(move |point| point != folder && point.starts_with(folder))
}

/// The path in a field of `mountinfo`, which has spaces and a few other characters as `\040`.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut parts = field.split(|byte| *byte == b'\\');
    let mut path = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(ESCAPE_LEN).unwrap_or((&[], part));
        let code = str::from_utf8(code).unwrap_or_default();
        path.extend(u8::from_str_radix(code, OCTAL));
        path.extend_from_slice(rest);
    }
    OsString::from_vec(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_data_folder_is_known_by_each_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["data/active/digest", "www"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink(at("data"), at("www/link")).unwrap();
        let data = DataFolder::new(&at("www/../data"));
        for name in ["", "data", "data/active", "data/active/digest"] {
            assert!(data.is_reached_from(&at(name)), "{name}");
        }
        assert!(data.is_reached_from(&at("www/link").canonicalize().unwrap()));
        assert!(data.is_reached_from(Path::new("/")));
        assert!(!data.is_reached_from(&at("www")));
    }

    /// The link stands for a bind mount: both have the device and the number of the folder they
    /// lead to.
    #[test]
    fn a_mount_of_the_data_folder_reaches_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["above/data/certificates", "elsewhere", "www/below"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        let data = DataFolder::new(&at("above/data"));
        let point = at("www/below/a b");
        let escaped = point.to_str().unwrap().replace(' ', "\\040");
        // A mount point in another encoding than UTF-8 hides no other one.
        let mut mounts = b"27 1 254:0 / /mnt/\xff rw - ext4 /dev/vda rw\n".to_vec();
        mounts.extend(
            format!("42 27 254:0 / {escaped} rw,relatime - ext4 /dev/vda rw\n").into_bytes(),
        );
        for (source, is_reached) in [
            ("above/data", true),
            ("above/data/certificates", true),
            ("above", true),
            ("elsewhere", false),
        ] {
            symlink(at(source), &point).unwrap();
            assert!(!data.is_reached_by(&at("www"), b""), "{source}");
            for root in ["www", "www/below"] {
                let found = data.is_reached_by(&at(root), &mounts);
                assert_eq!(found, is_reached, "{source} below {root}");
            }
            assert!(!data.is_reached_by(&at("elsewhere"), &mounts), "{source}");
            fs::remove_file(&point).unwrap();
        }
    }

    #[test]
    fn the_mounts_of_the_process_are_read() {
        let mounts = mounts();
        let mut points = mounts_below(Path::new("/"), &mounts);
        assert!(points.any(|point| point == Path::new("/proc")));
    }

    #[test]
    fn a_mount_point_is_read_with_its_spaces() {
        assert_eq!(unescaped(b"/a\\040b\\011c"), Path::new("/a b\tc"));
        assert_eq!(unescaped(b"/plain"), Path::new("/plain"));
    }
}
