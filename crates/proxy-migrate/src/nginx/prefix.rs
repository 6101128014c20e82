//! Prefixes of paths, and their replacement.

use crate::site::Rewrite;

/// A prefix without its trailing slash.
pub(super) fn shortened(prefix: &str) -> String {
    match prefix.trim_end_matches('/') {
        "" => "/".to_owned(),
        short => short.to_owned(),
    }
}

/// Rewrite of one prefix to another.
pub(super) fn replaced(from: String, to: String) -> Rewrite {
    if to == "/" {
        Rewrite::Strip(from)
    } else {
        Rewrite::Replace(from, to)
    }
}
