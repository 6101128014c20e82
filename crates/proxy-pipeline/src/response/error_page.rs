//! HTML pages of a route or a listener in place of the proxy's own.

use bytes::Bytes;
use http::StatusCode;
use proxy_errors::{Problem, escaped_html, status_text};
use proxy_model::{ErrorPages, ErrorStatuses, PagePart, PageTemplate, PageValue};
use std::sync::Arc;

/// HTML of at least this many bytes is sent from the template itself, and shorter parts are copied
/// together.
const SHARED_MIN_BYTES: usize = 4 << 10;

/// The page for `status` among `pages`: for exactly this status, else for its class.
pub(crate) fn find(pages: &ErrorPages, status: u16) -> Option<&Arc<PageTemplate>> {
    let own = pages
        .iter()
        .find(|page| *page.statuses == ErrorStatuses::One(status));
    let page = own.or_else(|| pages.iter().find(|page| page.statuses.contains(status)));
    page.map(|page| &page.template)
}

/// The page for one problem. It holds only the values and shares the HTML, so that a client that
/// does not read its page keeps no copy of it in memory. Values are escaped. The request's ID, and
/// the seconds to wait if there are any, are always in the page.
#[derive(Debug)]
pub(crate) struct PageBody {
    template: Arc<PageTemplate>,
    status: StatusCode,
    message: String,
    id: String,
    retry_after: String,
    /// Lines for values without a place in the page, until they are sent.
    footer: String,
    /// Index of the next part.
    next: usize,
    left: u64,
}

/// Shared HTML: a part of a template.
struct SharedHtml {
    template: Arc<PageTemplate>,
    part: usize,
}

impl AsRef<[u8]> for SharedHtml {
    fn as_ref(&self) -> &[u8] {
        match self.template.parts.get(self.part) {
            Some(PagePart::Html(html)) => html.as_bytes(),
            Some(PagePart::Value(_)) | None => &[],
        }
    }
}

impl PageBody {
    pub(crate) fn new(
        template: &Arc<PageTemplate>,
        problem: &Problem,
        correlation_id: &str,
    ) -> Self {
        let id = escaped_html(correlation_id);
        let seconds = problem.retry_after_secs();
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
        let mut page = Self {
            template: Arc::clone(template),
            status: problem.status(),
            message: escaped_html(&problem.client_message()),
            id,
            retry_after: seconds.map_or_else(String::new, |seconds| seconds.to_string()),
            footer,
            next: 0,
            left: 0,
        };
        let parts = template.parts.iter().map(|part| page.text(part).len());
        page.left = (parts.sum::<usize>() + page.footer.len()) as u64;
        page
    }

    /// Bytes that were not taken yet.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes the next piece; `None` at the end.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        let template = Arc::clone(&self.template);
        let mut copied = String::new();
        while copied.len() < SHARED_MIN_BYTES {
            if self.next == template.footer_at {
                copied.push_str(&std::mem::take(&mut self.footer));
            }
            let Some(part) = template.parts.get(self.next) else {
                break;
            };
            if matches!(part, PagePart::Html(html) if html.len() >= SHARED_MIN_BYTES) {
                if copied.is_empty() {
                    let part = self.next;
                    self.next += 1;
                    return Some(self.count(Bytes::from_owner(SharedHtml { template, part })));
                }
                break;
            }
            copied.push_str(self.text(part));
            self.next += 1;
        }
        (!copied.is_empty()).then(|| self.count(copied.into()))
    }

    fn count(&mut self, piece: Bytes) -> Bytes {
        self.left = self.left.saturating_sub(piece.len() as u64);
        piece
    }

    fn text<'t>(&'t self, part: &'t PagePart) -> &'t str {
        match part {
            PagePart::Html(html) => html,
            PagePart::Value(PageValue::Status) => self.status.as_str(),
            PagePart::Value(PageValue::StatusText) => status_text(self.status),
            PagePart::Value(PageValue::Message) => &self.message,
            PagePart::Value(PageValue::RequestId) => &self.id,
            PagePart::Value(PageValue::RetryAfter) => &self.retry_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_errors::{Detail, Reason};

    fn page(html: &str) -> (Arc<PageTemplate>, PageBody) {
        let template = Arc::new(PageTemplate::parse(html));
        let problem = Problem::new(Reason::RouteNotFound, Detail::None);
        let body = PageBody::new(&template, &problem, "an-id");
        (template, body)
    }

    #[test]
    fn long_html_is_shared_and_never_copied() {
        let long = "a".repeat(200_000);
        let (template, mut body) = page(&format!("<p>{{status}}</p>{long}</BODY></html>"));
        let length = body.left();
        let pieces: Vec<Bytes> = std::iter::from_fn(|| body.pop()).collect();

        let whole = pieces.concat();
        let expected = "</p>\n</BODY></html>";
        assert!(whole.starts_with(b"<p>404</p>a") && whole.ends_with(expected.as_bytes()));
        assert!(String::from_utf8_lossy(&whole).contains("Request ID: <code>an-id</code>"));
        assert_eq!((whole.len() as u64, body.left()), (length, 0));
        let shared = template.parts.iter().any(|part| {
            matches!(part, PagePart::Html(html)
                if pieces.iter().any(|piece| piece.as_ptr() == html.as_ptr()))
        });
        assert!(shared, "the template's own bytes");
        let copied = pieces.iter().filter(|piece| piece.len() < SHARED_MIN_BYTES);
        assert_eq!(copied.count() + 1, pieces.len());
    }

    #[test]
    fn a_page_of_many_values_is_made_piece_by_piece() {
        let (_, mut body) = page(&"{request_id} ".repeat(20_000));
        let length = body.left();
        let pieces: Vec<Bytes> = std::iter::from_fn(|| body.pop()).collect();

        assert!(
            pieces
                .iter()
                .all(|piece| piece.len() < 2 * SHARED_MIN_BYTES)
        );
        assert_eq!(pieces.concat(), "an-id ".repeat(20_000).as_bytes());
        assert_eq!(length, 120_000);
    }

    #[test]
    fn a_page_without_text_has_its_footer() {
        let (_, mut body) = page("");

        assert_eq!(
            body.pop().as_deref(),
            Some(&b"<p>Request ID: <code>an-id</code></p>\n"[..])
        );
        assert_eq!((body.pop(), body.left()), (None, 0));
    }
}
