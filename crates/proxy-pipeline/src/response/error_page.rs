//! HTML pages of a route or a listener in place of the proxy's own.

use http::HeaderValue;
use proxy_errors::{Problem, escaped_html, status_text};
use proxy_model::{ErrorPages, ErrorStatuses, PagePart, PageTemplate, PageValue};

/// The page for `status` among `pages`: that of the status, else that of its class.
pub(crate) fn find(pages: &ErrorPages, status: u16) -> Option<&PageTemplate> {
    let own = pages
        .iter()
        .find(|page| *page.statuses == ErrorStatuses::One(status));
    let page = own.or_else(|| pages.iter().find(|page| page.statuses.contains(status)));
    page.map(|page| &*page.template)
}

/// The bytes of the page for `problem`. Values are escaped. The request's ID, and the seconds to wait if there are
/// some, are in it in any case.
pub(crate) fn render(
    template: &PageTemplate,
    problem: &Problem,
    correlation_id: &HeaderValue,
) -> Vec<u8> {
    let id = escaped_html(correlation_id.to_str().unwrap_or_default());
    let seconds = problem.retry_after_secs();
    let mut page = String::new();
    for part in &template.parts {
        match part {
            PagePart::Html(html) => page.push_str(html),
            PagePart::Value(PageValue::Status) => page.push_str(problem.status().as_str()),
            PagePart::Value(PageValue::StatusText) => {
                page.push_str(status_text(problem.status()));
            }
            PagePart::Value(PageValue::Message) => {
                page.push_str(&escaped_html(&problem.client_message()));
            }
            PagePart::Value(PageValue::RequestId) => page.push_str(&id),
            PagePart::Value(PageValue::RetryAfter) => {
                page.extend(seconds.map(|seconds| seconds.to_string()));
            }
        }
    }
    let mut footer = String::new();
    if let Some(seconds) = seconds.filter(|_| !template.has(PageValue::RetryAfter)) {
        let unit = if seconds == 1 { "second" } else { "seconds" };
        let line = format!("<p>Please try again in {seconds} {unit}.</p>\n");
        footer.push_str(&line);
    }
    if !template.has(PageValue::RequestId) {
        let line = format!("<p>Request ID: <code>{id}</code></p>\n");
        footer.push_str(&line);
    }
    let end = page.to_ascii_lowercase().rfind("</body>");
    page.insert_str(end.unwrap_or(page.len()), &footer);
    page.into_bytes()
}
