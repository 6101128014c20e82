//! Failures as HTML pages, for browsers.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Content security policy: no scripts, no framing, links only to this server.
const POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The link of a failure page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageLink<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'static str,
}

/// A page about a failure, or with a question. All text is escaped.
#[derive(Debug)]
pub(crate) struct FailurePage<'a> {
    pub(crate) status: StatusCode,
    /// Subject, shown after the status text in title and heading; may be empty.
    pub(crate) subject: &'static str,
    /// Explanation in one sentence.
    pub(crate) message: &'a str,
    /// Seconds until the next try; `None` if a retry is pointless.
    pub(crate) retry_after: Option<u64>,
    /// Correlation ID, by which the log has details.
    pub(crate) reference: &'a str,
    /// Link to continue with.
    pub(crate) link: PageLink<'a>,
}

impl IntoResponse for FailurePage<'_> {
    fn into_response(self) -> Response {
        let Self {
            status,
            subject,
            message,
            retry_after,
            reference,
            link,
        } = self;
        let title = format!(
            "{}. {subject}",
            status.canonical_reason().unwrap_or("Error")
        );
        let title = title.trim_end_matches([' ', '.']);
        let retry = retry_after.map_or_else(String::new, |seconds| {
            format!("<p>Wait {seconds} seconds, and load the page again.</p>\n")
        });
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <main><h1>{title}</h1>\n<p>{}</p>\n{retry}<p>Reference: <code>{}</code></p>\n\
             <p><a href=\"{path}\">{text}</a></p></main>\n</html>\n",
            escaped(message),
            escaped(reference),
            path = escaped(link.path),
            text = link.text,
        );
        let mut response = (status, html).into_response();
        let fields = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-store"),
        ];
        let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
        response.headers_mut().extend(HeaderMap::from_iter(fields));
        response
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
