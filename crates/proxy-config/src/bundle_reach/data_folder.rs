//! Detection of the node's data folder under any path that resolves to it.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Levels of folders below the data folder that are known: `active` and `bundles`, and a bundle of
/// each.
const MAX_LEVELS: usize = 2;

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
        let is_inside = |folder: &Path| id(folder).is_some_and(|id| self.inside.contains(&id));
        let is_above = |folder: &Path| id(folder).is_some_and(|id| self.above.contains(&id));
        folder.ancestors().any(is_inside)
            || is_above(folder)
            || mounts_below(folder).any(|mount| is_inside(&mount) || is_above(&mount))
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

/// The mount points below `folder`, from which a part of another folder may be reached.
fn mounts_below(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let points: Vec<PathBuf> = points.map(unescaped).collect();
    let folder = folder.to_owned();
    let is_below = move |point: &PathBuf| *point != folder && point.starts_with(&folder);
    points.into_iter().filter(is_below)
}

/// The path in a field of `mountinfo`, which has spaces and a few other characters as `\040`.
fn unescaped(field: &str) -> PathBuf {
    let mut parts = field.split('\\');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(3).unwrap_or(("", part));
        path.extend(u8::from_str_radix(code, 8).map(char::from));
        path.push_str(rest);
    }
    path.into()
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

    #[test]
    fn a_mount_point_is_read_with_its_spaces() {
        assert_eq!(unescaped("/a\\040b\\011c"), Path::new("/a b\tc"));
        assert_eq!(unescaped("/plain"), Path::new("/plain"));
    }
}
