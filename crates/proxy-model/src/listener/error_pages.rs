//! HTML pages in place of the proxy's own.

use crate::place::{Place, Setting};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// A page for one status or a class of them.
#[derive(Clone, Debug)]
pub struct ErrorPage {
    /// Place of the page's block.
    pub place: Place,
    /// Statuses that the page replaces the body of.
    pub statuses: Setting<ErrorStatuses>,
    /// Path of the page's file; `None` for a page in the configuration.
    pub file: Option<Setting<PathBuf>>,
    /// The page in the configuration; `None` for one in a file.
    pub html: Option<Setting<String>>,
    /// The page, read.
    pub template: Arc<PageTemplate>,
}

/// The pages of a route or a listener, in file order, each for other statuses.
pub type ErrorPages = Vec<ErrorPage>;

/// One status, or a class of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorStatuses {
    /// 400 to 599.
    One(u16),
    /// `4xx` or `5xx`, by its first digit.
    Class(u16),
}

/// A page with places for values of one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageTemplate {
    /// HTML and values, in their order.
    pub parts: Vec<PagePart>,
    /// Index of the part that follows lines added to the page: its last `</body>`, else the end.
    pub footer_at: usize,
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PagePart {
    /// HTML to be sent unchanged.
    Html(String),
    /// The place of a value.
    Value(PageValue),
}

/// A value of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageValue {
    /// The number of the status.
    Status,
    /// The text of the status.
    StatusText,
    /// The message for the client.
    Message,
    /// The ID of the request.
    RequestId,
    /// Seconds to wait before another attempt; empty without any.
    RetryAfter,
}

const VALUES: [(&str, PageValue); 5] = [
    ("{status}", PageValue::Status),
    ("{status_text}", PageValue::StatusText),
    ("{message}", PageValue::Message),
    ("{request_id}", PageValue::RequestId),
    ("{retry_after}", PageValue::RetryAfter),
];

impl PageTemplate {
    /// Reads a page. Other braces, as in style sheets, are text.
    #[must_use]
    pub fn parse(html: &str) -> Self {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = html;
        while let Some((before, from_brace)) = rest.split_once('{') {
            text.push_str(before);
            let value = VALUES.iter().find_map(|(name, value)| {
                let after = from_brace.strip_prefix(name.strip_prefix('{')?)?;
                Some((after, *value))
            });
            if let Some((after, value)) = value {
                if !text.is_empty() {
                    parts.push(PagePart::Html(std::mem::take(&mut text)));
                }
                parts.push(PagePart::Value(value));
                rest = after;
            } else {
                text.push('{');
                rest = from_brace;
            }
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(PagePart::Html(text));
        }
        let footer_at = split_at_end_of_body(&mut parts);
        Self { parts, footer_at }
    }

    /// Returns true if the page has a place for `value`.
    #[must_use]
    pub fn has(&self, value: PageValue) -> bool {
        self.parts.contains(&PagePart::Value(value))
    }
}

/// Splits the HTML before its last `</body>`. Returns the index of the part that begins with it,
/// else of the end.
fn split_at_end_of_body(parts: &mut Vec<PagePart>) -> usize {
    let mut html = parts.iter_mut().enumerate().rev();
    let found = html.find_map(|(index, part)| {
        let PagePart::Html(html) = part else {
            return None;
        };
        let at = html.to_ascii_lowercase().rfind("</body>")?;
        Some((index, (at > 0).then(|| html.split_off(at))))
    });
    match found {
        None => parts.len(),
        Some((index, None)) => index,
        Some((index, Some(end))) => {
            parts.insert(index + 1, PagePart::Html(end));
            index + 1
        }
    }
}

impl ErrorStatuses {
    /// Returns true if the page is for `status`.
    #[must_use]
    pub const fn contains(self, status: u16) -> bool {
        match self {
            Self::One(own) => own == status,
            Self::Class(digit) => status / 100 == digit,
        }
    }
}

impl FromStr for ErrorStatuses {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "4xx" => return Ok(Self::Class(4)),
            "5xx" => return Ok(Self::Class(5)),
            _ => {}
        }
        match text.parse() {
            Ok(status @ 400..=599) => Ok(Self::One(status)),
            _ => Err("one from 400 to 599, `4xx` or `5xx`"),
        }
    }
}

impl fmt::Display for ErrorStatuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(status) => write!(f, "{status}"),
            Self::Class(digit) => write!(f, "{digit}xx"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_of_other_words_are_text() {
        let template = PageTemplate::parse("<style>p{a:b}</style>{{status}} {nothing}{message");

        let html = |text: &str| PagePart::Html(text.to_owned());
        assert_eq!(
            template.parts,
            [
                html("<style>p{a:b}</style>{"),
                PagePart::Value(PageValue::Status),
                html("} {nothing}{message"),
            ]
        );
        assert!(template.has(PageValue::Status) && !template.has(PageValue::Message));
    }

    #[test]
    fn lines_are_added_before_the_last_end_of_the_body() {
        for (page, index, behind) in [
            ("<p></body>{status}a</BODY></html>", 3, "</BODY></html>"),
            ("{status}</body>", 1, "</body>"),
            ("</body>", 0, "</body>"),
        ] {
            let template = PageTemplate::parse(page);
            let expected = PagePart::Html(behind.to_owned());
            assert_eq!(template.footer_at, index, "{page}");
            assert_eq!(template.parts.get(index), Some(&expected), "{page}");
        }
        let template = PageTemplate::parse("a{status}");
        assert_eq!(template.footer_at, template.parts.len());
    }

    #[test]
    fn statuses_are_errors() {
        for (text, contained) in [("404", 404), ("4xx", 418), ("5xx", 599)] {
            let statuses: ErrorStatuses = text.parse().unwrap();
            assert!(statuses.contains(contained) && !statuses.contains(200));
            assert_eq!(statuses.to_string(), text);
        }
        for text in ["200", "600", "3xx", "", "4XX", "404-405"] {
            assert!(text.parse::<ErrorStatuses>().is_err(), "{text}");
        }
    }
}
