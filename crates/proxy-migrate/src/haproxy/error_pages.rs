//! Converts `errorfile` to error pages.

use super::advice::advice;
use super::parser::Line;
use crate::kdl::Node;
use crate::site::Site;
use crate::source::Included;

/// The block `error-pages` for a section and its defaults. A file contains a complete response, and
/// its body becomes the page. Missing files, and responses that are not HTML, are noted.
pub(super) fn read<'l>(
    site: &mut Site,
    lines: impl Iterator<Item = &'l Line>,
    included: Included<'_>,
) -> Option<Node> {
    let mut pages: Vec<(u64, String)> = Vec::new();
    for line in lines.filter(|line| line.word(0) == "errorfile") {
        let status = line.word(1).parse::<u64>().ok();
        let status = status.filter(|status| (400..600).contains(status));
        let page = included(line.word(2)).and_then(|files| body(&files.first()?.text));
        match status.zip(page) {
            Some((status, page)) => {
                pages.retain(|(other, _)| *other != status);
                pages.push((status, page));
            }
            None => line.note(site, advice("errorfile")),
        }
    }
    let pages = pages.iter().map(|(status, html)| {
        let page = Node::number("page", *status);
        page.child(Node::text("html", html))
    });
    let pages: Vec<Node> = pages.collect();
    (!pages.is_empty()).then(|| Node::new("error-pages").children(pages))
}

/// Body of a response; `None` unless it is HTML without text that would be read as a variable.
fn body(response: &str) -> Option<String> {
    let response = response.replace("\r\n", "\n");
    let (head, body) = response.split_once("\n\n")?;
    let is_html = head.to_ascii_lowercase().contains("text/html");
    let body = body.trim();
    (is_html && !body.is_empty() && !body.contains("{$")).then(|| body.to_owned())
}
