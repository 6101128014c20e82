//! The file that a request's path names.

use proxy_routing::canonical_path;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The name of a file below a root: relative, without `.`, `..`, empty, or hidden segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath {
    relative: PathBuf,
    is_folder: bool,
}

impl FilePath {
    /// The file named by a request's path. `None` for a path outside the root, one with an escaped
    /// slash, a backslash or a NUL, and one that names a hidden file. Several slashes count as one.
    #[must_use]
    pub fn parse(request_path: &str) -> Option<Self> {
        let canonical = canonical_path(request_path).ok()?;
        let absolute = canonical.strip_prefix('/')?;
        let mut name = Vec::with_capacity(absolute.len());
        for segment in absolute.split('/').filter(|segment| !segment.is_empty()) {
            let is_well_known = name.is_empty() && segment == ".well-known";
            if segment.starts_with('.') && !is_well_known {
                return None;
            }
            if !name.is_empty() {
                name.push(b'/');
            }
            unescape(segment, &mut name)?;
        }
        Some(Self {
            relative: OsString::from_vec(name).into(),
            is_folder: canonical.ends_with('/'),
        })
    }

    /// The name, relative to the root; empty for the root itself.
    #[must_use]
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// Returns true if the path ends with a slash and so requests a folder.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.is_folder
    }
}

/// Appends the decoded bytes of `segment`; `None` if one is not allowed in names.
fn unescape(segment: &str, name: &mut Vec<u8>) -> Option<()> {
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        let decoded = if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
            u8::try_from(high * 16 + low).ok()?
        } else {
            byte
        };
        if matches!(decoded, 0 | b'/' | b'\\') {
            return None;
        }
        name.push(decoded);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Component;

    #[test]
    fn a_path_names_a_file_below_the_root() {
        for (path, name, is_folder) in [
            ("/", "", true),
            ("/a/b.txt", "a/b.txt", false),
            ("/a/", "a", true),
            ("//a///b", "a/b", false),
            ("/a/./b/../c", "a/c", false),
            ("/a%20b%C3%A9", "a bé", false),
            ("/%61", "a", false),
            ("/.well-known/x", ".well-known/x", false),
            ("/100%25", "100%", false),
            ("/%2525", "%25", false),
        ] {
            let file = FilePath::parse(path).unwrap();
            assert_eq!(file.relative(), Path::new(name), "{path}");
            assert_eq!(file.is_folder(), is_folder, "{path}");
        }
    }

    #[test]
    fn paths_that_leave_the_root_or_are_hidden_name_nothing() {
        for path in [
            "*",
            "a",
            "/..",
            "/../etc/passwd",
            "/a/../../b",
            "/%2e%2e/b",
            "/.%2e/b",
            "/%2E%2E%2fetc",
            "/a%2fb",
            "/a%5cb",
            "/..%5c..%5cb",
            "/a\\b",
            "/a%00.html",
            "/%zz",
            "/a%",
            "/.git/config",
            "/a/.env",
            "/%2egit/config",
            "/a/.well-known",
        ] {
            assert_eq!(FilePath::parse(path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_names_anything_but_plain_segments(path in "/(\\.|%2e|%2E|/|%2f|%5c|\\\\|%00|a|%25){0,12}") {
            if let Some(file) = FilePath::parse(&path) {
                let mut components = file.relative().components();
                prop_assert!(components.all(|one| matches!(one, Component::Normal(_))));
            }
        }
    }
}
