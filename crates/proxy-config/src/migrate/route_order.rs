//! Requests that go to another route since hosts are compared before paths.

use crate::load::loaded::Loaded;
use proxy_model::Route;
use proxy_routing::{Reordered, Router};

/// Maximum number of notes; the rest is counted.
const MAX_NOTES: usize = 50;

/// Notes on the requests of a configuration that go to another route than in releases that compared
/// paths before hosts and prefixes before regular expressions.
#[must_use]
pub fn route_order_notes(loaded: &Loaded) -> Vec<String> {
    let routes = &loaded.model.routes;
    let router = Router::new(routes.iter().map(Route::rule).collect());
    let changes = router.reordered();
    let mut notes: Vec<String> = changes
        .iter()
        .take(MAX_NOTES)
        .filter_map(|change| note(loaded, change))
        .collect();
    let rest = changes.len().saturating_sub(MAX_NOTES);
    if rest > 0 {
        notes.push(format!("{rest} more pairs of routes changed their order"));
    }
    notes
}

fn note(loaded: &Loaded, change: &Reordered) -> Option<String> {
    let model = &loaded.model;
    let (before, now) = (
        model.routes.get(change.before)?,
        model.routes.get(change.now)?,
    );
    let place = model.sources.file_and_line(now.place);
    Some(format!(
        "{place}: {} go to route \"{}\" now, to route \"{}\" before: hosts are compared first, then \
         paths (exact, regex, longer prefix), then further conditions; a `priority` restores it",
        change.requests, now.id, before.id
    ))
}
