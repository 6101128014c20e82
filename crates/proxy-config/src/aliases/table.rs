//! The table of aliases.

mod listeners;
mod process;
mod routes;
mod row;
mod upstreams;

use super::alias::{Alias, Anchor};
use std::collections::HashSet;
use std::sync::LazyLock;

/// The rows of an anchor, in the order in which they are applied.
pub(super) fn rows(anchor: Anchor) -> impl Iterator<Item = &'static Alias> {
    all().filter(move |alias| alias.anchor == anchor)
}

pub(crate) fn all() -> impl Iterator<Item = &'static Alias> {
    let tables = [
        process::ROWS,
        listeners::ROWS,
        routes::ROWS,
        upstreams::ROWS,
    ];
    tables.into_iter().flatten()
}

/// Returns true if the path of an alias begins with a top-level node of this name.
pub(super) fn begins_at_top(name: &str) -> bool {
    static FIRST: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        let rows = rows(Anchor::Top).filter_map(|alias| alias.from.split('.').next());
        rows.flat_map(|names| names.split('|')).collect()
    });
    FIRST.contains(name)
}

/// Returns true if an alias of the anchor has this name.
pub(super) fn is_last_name(anchor: Anchor, name: &str) -> bool {
    static LAST: LazyLock<HashSet<(usize, &str)>> = LazyLock::new(|| {
        let names = all().flat_map(|alias| {
            let last = alias.from.rsplit('.').next().unwrap_or_default();
            last.split('|').map(|name| (alias.anchor as usize, name))
        });
        names.collect()
    });
    LAST.contains(&(anchor as usize, name))
}
