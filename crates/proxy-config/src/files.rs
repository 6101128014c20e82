//! Where files come from: the disk, or memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Where a configuration's files come from.
#[derive(Clone, Copy, Debug)]
pub enum Files<'a> {
    /// The disk.
    Disk,
    /// These, by name; `/` separates folders. Nothing else exists, and nothing but includes is
    /// looked for: certificates and the like need not be there.
    Memory(&'a BTreeMap<String, Vec<u8>>),
}

impl Files<'_> {
    /// Reads a file, or the first `limit + 1` bytes of one that is larger than `limit`.
    pub(crate) fn read(self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::Disk => {
                let mut bytes = Vec::new();
                File::open(name)?.take(limit + 1).read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            Self::Memory(files) => {
                let file = files.get(name).ok_or(io::ErrorKind::NotFound)?;
                Ok(file.clone())
            }
        }
    }

    /// The names of the files that match `pattern`, sorted.
    pub(crate) fn matching(self, pattern: &str) -> Vec<String> {
        match self {
            Self::Disk => on_disk(pattern),
            Self::Memory(files) => {
                let pattern = without_dots(pattern);
                let names = files.keys().filter(|name| matches_path(&pattern, name));
                names.cloned().collect()
            }
        }
    }

    /// Whether a file or folder is surely not there.
    pub(crate) fn lacks(self, path: &Path) -> bool {
        match self {
            Self::Disk => !path.exists(),
            Self::Memory(_) => false,
        }
    }

    /// Whether there is something else than a folder.
    pub(crate) fn is_no_folder(self, path: &Path) -> bool {
        match self {
            Self::Disk => path.exists() && !path.is_dir(),
            Self::Memory(_) => false,
        }
    }

    /// The name under which a file is the same whatever way led to it.
    pub(crate) fn identity(self, name: &str) -> PathBuf {
        match self {
            Self::Disk => Path::new(name)
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
        found = found.iter().flat_map(|folder| step(folder, part)).collect();
    }
    found.retain(|name| Path::new(name).is_file());
    found.sort();
    found
}

/// What `part` of a pattern stands for in `folder`.
fn step(folder: &str, part: &str) -> Vec<String> {
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

/// A path without `.` and `..`.
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

/// Whether `*` and `?` in `pattern` can stand for what makes it `name`. Names that begin with a
/// dot are hidden from a leading `*` or `?`.
fn matches_name(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && pattern.starts_with(['*', '?']) {
        return false;
    }
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // Where to go on when the last `*` has to stand for one character more.
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
