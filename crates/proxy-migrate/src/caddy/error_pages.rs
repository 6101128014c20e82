//! Converts `handle_errors` to error pages.

use super::matcher::is_matcher;
use super::parser::Directive;
use crate::kdl::Node;
use crate::site::Site;

const ADVICE: &str = "write `error-pages { page 404 file=\"404.html\" }`; errors have the proxy's own body until then";
const COVERED: &str = "an earlier `handle_errors` has its statuses";

/// Caddy's placeholders in error pages, with the proxy's.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("{err.status_code}", "{status}"),
    ("{err.status_text}", "{status_text}"),
    ("{err.message}", "{message}"),
    ("{http.error.status_code}", "{status}"),
    ("{http.error.status_text}", "{status_text}"),
    ("{http.error.message}", "{message}"),
];
const STATUS: &str = "{status}";

/// A status or class, such as `404` or `5xx`, with its setting.
type Page = (String, Node);

/// The block `error-pages` for the `handle_errors` of a block with a root folder. An error page
/// that cannot be converted is only noted, because it refuses no requests.
pub(super) fn read(site: &mut Site, block: &[Directive], root: Option<&str>) -> Option<Node> {
    let mut found: Vec<&Directive> = block
        .iter()
        .filter(|it| it.name() == "handle_errors")
        .collect();
    // A `handle_errors` without statuses applies to the remaining ones.
    found.sort_by_key(|it| it.arguments().is_empty());
    let mut pages: Vec<Page> = Vec::new();
    for directive in found {
        let Some(own) = pages_of(directive, root) else {
            site.note(&directive.place, &directive.shown(), ADVICE);
            continue;
        };
        for (status, page) in own {
            if pages.iter().any(|(known, _)| covers(known, &status)) {
                if !directive.arguments().is_empty() {
                    site.note(&directive.place, &directive.shown(), COVERED);
                }
            } else {
                pages.push((status, page));
            }
        }
    }
    let pages: Vec<Node> = pages.into_iter().map(|(_, page)| page).collect();
    (!pages.is_empty()).then(|| Node::new("error-pages").children(pages))
}

/// Returns true if `known`, a status or a class, includes `status`, which may be a class as well.
fn covers(known: &str, status: &str) -> bool {
    let class = known.strip_suffix("xx");
    known == status || class.is_some_and(|first| status.starts_with(first))
}

/// Pages of one `handle_errors`; `None` unless it has a text or a file.
fn pages_of(directive: &Directive, root: Option<&str>) -> Option<Vec<Page>> {
    let statuses = statuses(directive)?;
    let find = |name: &str| directive.block.iter().find(|it| it.name() == name);
    let root = match find("root") {
        Some(own) => Some(last_for_all(own)?),
        None => root,
    };
    let names = directive.block.iter().map(Directive::name);
    let mut names: Vec<&str> = names.filter(|name| *name != "root").collect();
    names.sort_unstable();
    match names.as_slice() {
        ["respond"] => text_pages(find("respond")?, &statuses),
        ["file_server", "rewrite"] => {
            let server = find("file_server")?;
            let is_plain = server.arguments().is_empty() && server.block.is_empty();
            let path = last_for_all(find("rewrite")?).filter(|_| is_plain)?;
            file_pages(root?, path, &statuses)
        }
        _ => None,
    }
}

/// Statuses and classes; `4xx` and `5xx` if none are given.
fn statuses(directive: &Directive) -> Option<Vec<String>> {
    let words = directive.arguments();
    if words.is_empty() {
        return Some(vec!["4xx".to_owned(), "5xx".to_owned()]);
    }
    let is_error = |word: &String| {
        let number = word.parse::<u16>();
        number.is_ok_and(|it| (400..600).contains(&it)) || matches!(&**word, "4xx" | "5xx")
    };
    words.iter().all(is_error).then(|| words.to_vec())
}

/// The last argument of a directive that applies to all requests, as in `root * /srv` and `rewrite
/// /a`.
fn last_for_all(directive: &Directive) -> Option<&str> {
    match directive.arguments() {
        [value] => Some(value),
        [all, value] if all == "*" => Some(value),
        _ => None,
    }
}

/// Pages with the text of a `respond` that keeps the error's status.
fn text_pages(directive: &Directive, statuses: &[String]) -> Option<Vec<Page>> {
    let mut words = directive.arguments();
    if let [all, rest @ ..] = words
        && all == "*"
    {
        words = rest;
    }
    let text = match words {
        [text] => text,
        [text, status] => {
            let is_same =
                PLACEHOLDERS.contains(&(&**status, STATUS)) || statuses == [status.clone()];
            Some(text).filter(|_| is_same)?
        }
        _ => return None,
    };
    let is_status = text.parse::<u16>().is_ok();
    if is_status || is_matcher(text) || !directive.block.is_empty() {
        return None;
    }
    let html = html(text)?;
    let pages = statuses.iter();
    let page = |status: &String| {
        (
            status.clone(),
            page(status).child(Node::text("html", &html)),
        )
    };
    Some(pages.map(page).collect())
}

/// Pages from files in a folder. If the path contains the status, statuses must be given, because
/// files are not searched.
fn file_pages(root: &str, path: &str, statuses: &[String]) -> Option<Vec<Page>> {
    let path = converted(path);
    if !path.starts_with('/') || path.contains('?') || !root.starts_with('/') {
        return None;
    }
    let pages = statuses.iter().map(|status| {
        let path = match status.parse::<u16>() {
            Ok(_) => path.replace(STATUS, status),
            Err(_) => path.clone(),
        };
        let file = format!("{}{path}", root.trim_end_matches('/'));
        let is_plain = !file.contains(['{', '}']);
        is_plain.then(|| {
            (
                status.clone(),
                page(status).child(Node::text("file", &file)),
            )
        })
    });
    pages.collect()
}

fn page(status: &str) -> Node {
    match status.parse() {
        Ok(number) => Node::number("page", number),
        Err(_) => Node::text("page", status),
    }
}

/// HTML page for a text; `None` if it has placeholders without a counterpart. Text that is not HTML
/// is escaped.
fn html(text: &str) -> Option<String> {
    // The proxy's own placeholders, and Caddy's `{$NAME}`.
    let has_other = |text: &str| {
        let mut after = text.split('{').skip(1);
        after.any(|rest| {
            let name = rest.split_once('}').map(|(name, _)| name);
            name.is_some_and(|name| !name.is_empty() && name.chars().all(is_name_char))
        })
    };
    let known = PLACEHOLDERS.iter();
    let others = known.fold(text.to_owned(), |text, (theirs, _)| {
        text.replace(theirs, "")
    });
    if has_other(&others) || text.trim().is_empty() {
        return None;
    }
    let page = converted(text);
    if page.trim_start().starts_with('<') {
        return Some(page);
    }
    let text = page.replace('&', "&amp;").replace('<', "&lt;");
    Some(format!(
        "<!DOCTYPE html><title>{{status}} {{status_text}}</title><p>{text}</p>"
    ))
}

const fn is_name_char(c: char) -> bool {
    matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '$')
}

/// Replaces Caddy's placeholders by the proxy's.
fn converted(text: &str) -> String {
    let known = PLACEHOLDERS.iter();
    known.fold(text.to_owned(), |text, (theirs, ours)| {
        text.replace(theirs, ours)
    })
}
