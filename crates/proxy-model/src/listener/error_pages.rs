//! HTML pages in place of the proxy's own.

use crate::place::{Place, Setting};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// A page for one status or a class of them.
#[derive(Clone, Debug)]
pub struct ErrorPage {
    /// Place of its block.
    pub place: Place,
    /// The statuses.
    pub statuses: Setting<ErrorStatuses>,
    /// Path of its file; `None` for a page in the configuration.
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
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PagePart {
    /// HTML as it is.
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
        Self { parts }
    }

    /// Whether the page has a place for `value`.
    #[must_use]
    pub fn has(&self, value: PageValue) -> bool {
        self.parts.contains(&PagePart::Value(value))
    }
}

impl ErrorStatuses {
    /// Whether the page is for `status`.
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
