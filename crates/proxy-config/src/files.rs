//! The source of a configuration's files: the disk, or memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The source of a configuration's files.
#[derive(Clone, Copy, Debug)]
pub enum Files<'a> {
    /// Files of the machine, by their paths.
    Disk,
    /// Files by name; `/` separates folders. No other file exists, and only includes are looked up:
    /// files named by settings are not checked.
    Memory(&'a BTreeMap<String, Vec<u8>>),
    /// The disk, and these files, which exist although no disk has them: private keys that a node
    /// holds in memory.
    DiskAnd(&'a BTreeSet<PathBuf>),
}

impl Files<'_> {
    /// Reads a regular file of at most `limit` bytes. It never waits for the other end of a pipe.
    pub(crate) fn read(self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::Disk | Self::DiskAnd(_) => Ok(proxy_setting_files::read(Path::new(name), limit)?),
            Self::Memory(files) => {
                let file = files.get(name).ok_or(io::ErrorKind::NotFound)?;
                if u64::try_from(file.len()).is_ok_and(|length| limit < length) {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                Ok(file.clone())
            }
        }
    }

    /// Reads a file that a command or the caller names. It may be a pipe, as of `/dev/stdin` or a
    /// process substitution of a shell.
    pub(crate) fn read_named_by_caller(self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        if matches!(self, Self::Memory(_)) || Path::new(name).is_file() {
            return self.read(name, limit);
        }
        let mut bytes = Vec::new();
        let read = File::open(name)?
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
        if u64::try_from(read).is_ok_and(|read| limit < read) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }

    /// The value of an environment variable of the process; files in memory have none.
    pub(crate) fn variable(self, name: &str) -> Option<String> {
        match self {
            Self::Disk | Self::DiskAnd(_) => std::env::var(name).ok(),
            Self::Memory(_) => None,
        }
    }

    /// The names of the files that match the glob `pattern`, sorted.
    pub(crate) fn matching(self, pattern: &str) -> Vec<String> {
        match self {
            Self::Disk | Self::DiskAnd(_) => on_disk(pattern),
            Self::Memory(files) => {
                let pattern = without_dots(pattern);
                let names = files.keys().filter(|name| matches_path(&pattern, name));
                names.cloned().collect()
            }
        }
    }

    /// Returns true if neither a file nor a folder exists at `path`; false when that cannot be
    /// determined.
    pub(crate) fn lacks(self, path: &Path) -> bool {
        match self {
            Self::Disk => !path.exists(),
            Self::DiskAnd(others) => !others.contains(path) && !path.exists(),
            Self::Memory(_) => false,
        }
    }

    /// Returns true if there is a folder at `path`, which has no dots.
    pub(crate) fn has_folder(self, path: &str) -> bool {
        match self {
            Self::Disk | Self::DiskAnd(_) => Path::new(path).is_dir(),
            Self::Memory(files) => {
                let mut below = files.keys().filter_map(|name| name.strip_prefix(path));
                below.any(|rest| path.is_empty() || rest.starts_with('/'))
            }
        }
    }

    /// Returns true if `path` exists and is not a folder.
    pub(crate) fn is_no_folder(self, path: &Path) -> bool {
        match self {
            Self::Disk | Self::DiskAnd(_) => path.exists() && !path.is_dir(),
            Self::Memory(_) => false,
        }
    }

    /// A canonical name, equal for all paths of one file.
    pub(crate) fn identity(self, name: &str) -> PathBuf {
        match self {
            Self::Disk | Self::DiskAnd(_) => Path::new(name)
                .canonicalize()
                .unwrap_or_else(|_| name.into()),
            Self::Memory(_) => name.into(),
        }
    }
}

fn on_disk(pattern: &str) -> Vec<String> {
    let (root, rest) = match pattern.strip_prefix('/') {
        Some(rest) => ("/".to_owned(), rest),
        None => (String::new(), pattern),
    };
    let mut found = vec![root];
    for part in rest.split('/').filter(|part| !part.is_empty()) {
        found = found
            .iter()
            .flat_map(|folder| matching_entries(folder, part))
            .collect();
    }
    found.retain(|name| Path::new(name).is_file());
    found.sort();
    found
}

/// The entries of `folder` that match `part` of a glob pattern.
fn matching_entries(folder: &str, part: &str) -> Vec<String> {
    let join = |name: &str| match folder {
        "" => name.to_owned(),
        folder if folder.ends_with('/') => format!("{folder}{name}"),
        folder => format!("{folder}/{name}"),
    };
    if !part.contains(['*', '?']) {
        return vec![join(part)];
    }
    let listed = std::fs::read_dir(if folder.is_empty() { "." } else { folder });
    let names = listed
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name());
    names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| matches_name(part, name))
        .map(|name| join(&name))
        .collect()
}

/// The path without `.` and `..` components.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn matches_path(pattern: &str, name: &str) -> bool {
    let parts = pattern.split('/').count();
    let pairs = pattern.split('/').zip(name.split('/'));
    parts == name.split('/').count()
        && pairs
            .into_iter()
            .all(|(part, name)| matches_name(part, name))
}

/// Returns true if the glob `pattern` with `*` and `?` matches `name`. A leading `*` or `?` does
/// not match a leading dot.
fn matches_name(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && pattern.starts_with(['*', '?']) {
        return false;
    }
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // Position to resume at when the last `*` has to take one character more.
    let mut star = None;
    loop {
        let tail = name.clone();
        match (pattern.next(), name.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                name = tail.clone();
                star = Some((pattern.clone(), tail));
            }
            (Some('?'), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => {
                let Some((after, rest)) = &mut star else {
                    return false;
                };
                if rest.next().is_none() {
                    return false;
                }
                pattern = after.clone();
                name = rest.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_parts_of_a_name() {
        let cases = [
            ("*.kdl", "a.kdl", true),
            ("*.kdl", ".kdl", false),
            ("*.kdl", "a.kdl.bak", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?.kdl", "ab.kdl", false),
            ("?.kdl", "é.kdl", true),
            ("*", "a", true),
            ("**", "", true),
            ("", "a", false),
        ];
        for (pattern, name, matches) in cases {
            assert_eq!(matches_name(pattern, name), matches, "{pattern} {name}");
        }
        assert!(matches_path("routes/*.kdl", "routes/a.kdl"));
        assert!(!matches_path("routes/*.kdl", "routes/deep/a.kdl"));
    }
}
