//! Beginnings of paths that are replaced.

use crate::site::Rewrite;

/// A prefix without its slash at the end.
pub(super) fn shortened(prefix: &str) -> String {
    match prefix.trim_end_matches('/') {
        "" => "/".to_owned(),
        short => short.to_owned(),
    }
}

/// The rewrite of a beginning by another one.
pub(super) fn replaced(from: String, to: String) -> Rewrite {
    if to == "/" {
        Rewrite::Strip(from)
    } else {
        Rewrite::Replace(from, to)
    }
}
