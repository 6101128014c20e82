//! Replacement of the beginning of a path.

use std::fmt;

/// A replacement of the beginning of a path by another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrefixReplacement {
    /// The beginning, whole segments as with `path-prefix`; begins with a slash.
    pub from: String,
    /// The new beginning; begins with a slash.
    pub to: String,
}

impl PrefixReplacement {
    /// A replacement of `from` by `to`.
    ///
    /// # Errors
    /// One of them is not a path without a query.
    pub fn new(from: &str, to: &str) -> Result<Self, String> {
        for path in [from, to] {
            check_path(path)?;
        }
        Ok(Self {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }

    /// `path` with its prefix replaced; `None` if it begins with other segments. The two parts are
    /// joined by exactly one slash, so that no result begins with two, which would name a host.
    #[must_use]
    pub fn apply(&self, path: &str) -> Option<String> {
        let Self { from, to } = self;
        let rest = path.strip_prefix(from.as_str())?;
        let ends_segment = from.ends_with('/') || rest.is_empty() || rest.starts_with('/');
        if !ends_segment {
            return None;
        }
        if rest.is_empty() && !from.ends_with('/') {
            return Some(to.clone());
        }
        let base = to.trim_end_matches('/');
        let rest = rest.trim_start_matches('/');
        Some(format!("{base}/{rest}"))
    }
}

/// Checks that `text` is a path that can be sent unchanged.
pub(super) fn check_path(text: &str) -> Result<(), String> {
    if !text.starts_with('/') {
        return Err(format!("`{text}` does not begin with `/`"));
    }
    if text.starts_with("//") {
        return Err(format!(
            "`{text}` begins with two slashes, which name a host"
        ));
    }
    if text.contains(['?', '#']) {
        return Err(format!("`{text}` has a query or a fragment"));
    }
    check_characters(text)
}

/// Checks that `text` holds only characters that a URL may hold.
pub(crate) fn check_characters(text: &str) -> Result<(), String> {
    let is_other = |c: char| {
        !c.is_ascii_graphic() || matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
    };
    match text.chars().find(|c| is_other(*c)) {
        Some(other) => Err(format!("{other:?} must be escaped with `%` in a URL")),
        None => Ok(()),
    }
}

impl fmt::Display for PrefixReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(from: &str, to: &str, path: &str) -> Option<String> {
        PrefixReplacement::new(from, to).unwrap().apply(path)
    }

    #[test]
    fn a_prefix_is_replaced_by_whole_segments() {
        for (from, to, path, expected) in [
            ("/old", "/new", "/old", Some("/new")),
            ("/old", "/new", "/old/", Some("/new/")),
            ("/old", "/new", "/old/a/b", Some("/new/a/b")),
            ("/old", "/new", "/older", None),
            ("/old", "/new", "/", None),
            ("/old/", "/new/", "/old/a", Some("/new/a")),
            ("/old/", "/new", "/old/a", Some("/new/a")),
            ("/old/", "/", "/old/", Some("/")),
            ("/old", "/", "/old", Some("/")),
            ("/old", "/", "/old/a", Some("/a")),
            ("/", "/new", "/a", Some("/new/a")),
            ("/", "/new", "/", Some("/new/")),
        ] {
            let found = applied(from, to, path);
            assert_eq!(found.as_deref(), expected, "{from} {to} {path}");
        }
    }

    #[test]
    fn no_result_begins_with_a_host() {
        assert_eq!(
            applied("/a", "/", "/a//evil.example").unwrap(),
            "/evil.example"
        );
        assert!(PrefixReplacement::new("/a", "//evil.example").is_err());
    }
}
