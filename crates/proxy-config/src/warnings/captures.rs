//! Warnings about captures of a `path-regex` in settings that take their text as it is.

use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::diagnostics::Diagnostics;
use proxy_model::{Model, Place, Route, Service};

pub(super) fn find(model: &Model, faults: &mut Diagnostics) {
    for route in &model.routes {
        let mut patterns = route.matches.paths.iter();
        // Elsewhere `$1` refers to nothing in any notation.
        if patterns.any(|pattern| pattern.setting() == "path-regex") {
            rewritten_paths(route, faults);
            redirects(route, faults);
        }
    }
}

fn rewritten_paths(route: &Route, faults: &mut Diagnostics) {
    let Some(rewrite) = &route.policies.rewrite else {
        return;
    };
    let path = rewrite.path.as_ref();
    let path = path.map(|path| (path.place(), path.as_str()));
    let prefix = rewrite.replace_prefix.as_ref();
    let prefix = prefix.map(|prefix| (prefix.place(), prefix.to.as_str()));
    for (place, text) in path.into_iter().chain(prefix) {
        let help = "write `path-from-regex`, which fills in the groups of `path-regex`";
        captures_in(place, text, help, faults);
    }
}

fn redirects(route: &Route, faults: &mut Diagnostics) {
    let Service::Redirect(redirect) = &route.service else {
        return;
    };
    let to = redirect.to.as_ref();
    let path = to.and_then(|to| to.path.as_deref().map(|path| (to.place(), path)));
    let query = to.and_then(|to| to.query.as_deref().map(|query| (to.place(), query)));
    let prefix = redirect.replace_prefix.as_ref();
    let prefix = prefix.map(|prefix| (prefix.place(), prefix.to.as_str()));
    for (place, text) in path.into_iter().chain(query).chain(prefix) {
        let help = "`replace-prefix` keeps the rest of a path; a redirect fills in no groups";
        captures_in(place, text, help, faults);
    }
}

fn captures_in(place: Option<Place>, text: &str, help: &'static str, faults: &mut Diagnostics) {
    let Some((place, capture)) = place.zip(capture(text)) else {
        return;
    };
    let message = format!("`{capture}` is sent as it is written");
    let fault = Diagnostic::new(DiagnosticCode::ForeignNotation, place, message);
    faults.push(fault.label("not a group of the regex").help(help));
}

/// The first `$1` or `${name}` in `text`.
fn capture(text: &str) -> Option<&str> {
    let mut starts = text.match_indices('$');
    starts.find_map(|(at, _)| {
        let rest = text.get(at..)?;
        let name = rest.get(1..)?;
        let length = if name.starts_with('{') {
            name.find('}')? + 1
        } else {
            let end = name.find(|c: char| !c.is_ascii_digit());
            end.unwrap_or(name.len())
        };
        rest.get(..1 + length).filter(|_| length > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::capture;

    #[test]
    fn text_in_the_notation_of_captures_is_found() {
        for (text, found) in [
            ("/a/$1/b", Some("$1")),
            ("/a$$/$12", Some("$12")),
            ("/${id}/x", Some("${id}")),
            ("/a$", None),
            ("/$id", None),
            ("/${id", None),
        ] {
            assert_eq!(capture(text), found, "{text}");
        }
    }
}
