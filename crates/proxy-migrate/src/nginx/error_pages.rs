//! Converts `error_page` to error pages.

use super::parser::Directive;
use super::scope::Scope;
use super::value::has_variables;
use crate::kdl::Node;
use crate::site::Site;

const ADVICE: &str =
    "write `error-pages { page 404 file=\"404.html\" }`; errors of the upstream pass";

/// The block `error-pages` for the directives in effect in a scope. Notes those that refer to a
/// location or a URL, or change the status.
pub(super) fn read(site: &mut Site, scope: &Scope<'_>) -> Option<Node> {
    let mut pages: Vec<(u16, String)> = Vec::new();
    for directive in scope.all("error_page") {
        match file_pages(directive, scope) {
            Some(found) => pages.extend(found),
            None => site.note(&directive.place, &directive.shown(), ADVICE),
        }
    }
    // nginx uses the first page of a status.
    let mut nodes: Vec<Node> = Vec::new();
    let mut seen = Vec::new();
    for (status, file) in pages {
        if !seen.contains(&status) {
            seen.push(status);
            let page = Node::number("page", u64::from(status));
            nodes.push(page.child(Node::text("file", &file)));
        }
    }
    (!nodes.is_empty()).then(|| Node::new("error-pages").children(nodes))
}

/// Statuses and file of a directive such as `error_page 500 502 /50x.html`; `None` for other forms.
fn file_pages(directive: &Directive, scope: &Scope<'_>) -> Option<Vec<(u16, String)>> {
    let (uri, statuses) = directive.words.split_last()?;
    if !uri.starts_with('/') || has_variables(uri) || uri.contains('?') {
        return None;
    }
    let root = root(scope, uri)?;
    let file = format!("{}{uri}", root.trim_end_matches('/'));
    let statuses = statuses.iter().map(|status| match status.parse::<u16>() {
        Ok(status @ 400..=599) => Some((status, file.clone())),
        Ok(_) | Err(_) => None,
    });
    statuses.collect()
}

/// Folder of a page: its location's, or else the server's. `None` if its location does not serve
/// files.
fn root<'d>(scope: &Scope<'d>, uri: &str) -> Option<&'d str> {
    let mut blocks = scope.blocks();
    let (http, server) = (blocks.next()?, blocks.next()?);
    let own = server.iter().find(|it| {
        let words: Vec<&str> = it.words.iter().map(String::as_str).collect();
        it.name == "location" && (words == ["=", uri] || words == [uri])
    });
    let word = |block: &'d [Directive], name: &str| {
        let found = block.iter().find(|it| it.name == name);
        found.and_then(|it| it.word(0))
    };
    let block = own.map_or(&[][..], Directive::children);
    let is_other = |it: &Directive| {
        it.name.ends_with("_pass") || matches!(&*it.name, "alias" | "return" | "rewrite")
    };
    if block.iter().any(is_other) {
        return None;
    }
    let root = word(block, "root").or_else(|| word(server, "root"));
    let root = root.or_else(|| word(http, "root"))?;
    (!has_variables(root)).then_some(root)
}
