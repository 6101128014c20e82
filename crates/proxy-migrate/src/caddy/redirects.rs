//! `redir`.

use super::parser::Directive;
use crate::site::{Service, Site};

/// The prefix that a `handle_path` has removed.
#[derive(Clone, Copy)]
pub(super) struct Stripped<'p> {
    pub(super) prefix: &'p str,
    /// False if it may end within a segment, where `replace-prefix` replaces nothing.
    pub(super) is_whole: bool,
}

/// Converts a `redir`. Within `handle_path`, `{uri}` is the path without the prefix.
pub(super) fn read(
    site: &mut Site,
    directive: &Directive,
    words: &[String],
    stripped: Option<Stripped<'_>>,
) -> Option<Service> {
    let target = words.first().map(String::as_str).unwrap_or_default();
    let status = match words.get(1).map(String::as_str) {
        Some("permanent" | "301") => 301,
        Some("308") => 308,
        Some("307") => 307,
        Some("303") => 303,
        _ => 302,
    };
    let keeps = target.strip_suffix("{uri}");
    let bare = keeps.unwrap_or(target);
    if let Some((to, stripped)) = keeps.zip(stripped)
        && stripped.is_whole
        && let Some(service) = moved(to, stripped.prefix, status)
    {
        return Some(service);
    }
    let to = match (bare, keeps.is_some()) {
        (_, true) if stripped.is_some() => None,
        ("https://{host}", true) => Some("https".to_owned()),
        ("http://{host}", true) => Some("http".to_owned()),
        (bare, _) if bare.contains('{') => None,
        (bare, true) => (bare.matches('/').count() == 2).then(|| bare.to_owned()),
        (bare, false) if bare.contains("://") && bare.matches('/').count() == 2 => {
            Some(format!("{bare}/?"))
        }
        // The query is not preserved.
        (bare, false) if bare.contains('?') => Some(bare.to_owned()),
        (bare, false) => Some(format!("{bare}?")),
    };
    if to.is_none() {
        site.note(
            &directive.place,
            &directive.shown(),
            "write `redirect` with a URL, or with `replace-prefix`",
        );
    }
    Some(Service::Redirect {
        to: Some(to?),
        status,
        replace_prefix: None,
    })
}

/// A redirect from below one prefix to below another, on the same or another host.
fn moved(to: &str, from: &str, status: u16) -> Option<Service> {
    let (origin, path) = match to.split_once("://") {
        Some((scheme @ ("https" | "http"), "{host}")) => (Some(scheme), "/"),
        Some((_, rest)) => {
            let path = rest
                .find('/')
                .map_or("", |at| rest.get(at..).unwrap_or_default());
            (to.strip_suffix(path), path)
        }
        None => (None, to),
    };
    let path = if path.is_empty() { "/" } else { path };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
    let is_path = path.starts_with('/') && path.chars().all(is_plain);
    // In `/a{uri}`, no slash is between path and placeholder.
    let is_whole = is_path && (path == "/" || !path.ends_with('/'));
    is_whole.then(|| Service::Redirect {
        to: origin.map(str::to_owned),
        status,
        replace_prefix: Some((from.to_owned(), path.to_owned())),
    })
}
