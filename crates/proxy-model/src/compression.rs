//! Compression of responses.

use crate::place::{Place, Setting};
use proxy_coding::Coding;
use std::fmt;
use std::str::FromStr;

/// Compression of the responses of a route.
#[derive(Clone, Debug)]
pub struct Compression {
    /// Place of the block.
    pub place: Place,
    /// Codings in order of preference, for clients that accept several equally.
    pub codings: Setting<Vec<Coding>>,
    /// Types of the bodies that are compressed.
    pub types: Setting<Vec<MediaRange>>,
    /// Minimum size of a compressed body, in bytes; applies to bodies of known size.
    pub min_size: Setting<u64>,
    /// Level of gzip, 1 to 9.
    pub gzip_level: Setting<u8>,
    /// Level of Brotli, 0 to 6.
    pub brotli_level: Setting<u8>,
    /// Level of Zstandard, 1 to 9.
    pub zstd_level: Setting<u8>,
}

/// A media type, or several: `text/html`, `text/*`, `application/*+json`. Lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MediaRange {
    text: Box<str>,
}

/// The text is not a media type or a range of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a type as `text/html`, `text/*` or `application/*+json`")]
pub struct MediaRangeError;

const USUAL: [&str; 11] = [
    "text/*",
    "application/json",
    "application/*+json",
    "application/javascript",
    "application/xml",
    "application/*+xml",
    "application/wasm",
    "application/x-ndjson",
    "image/svg+xml",
    "font/otf",
    "font/ttf",
];

impl MediaRange {
    /// The types that are compressed unless the configuration lists types.
    pub fn usual() -> Vec<Self> {
        USUAL
            .iter()
            .map(|text| Self {
                text: (*text).into(),
            })
            .collect()
    }

    /// Returns true if `media_type`, the value of a `Content-Type`, is one of these types.
    pub fn contains(&self, media_type: &[u8]) -> bool {
        let end = media_type.iter().position(|byte| *byte == b';');
        let name = media_type.get(..end.unwrap_or(media_type.len()));
        let name = name.unwrap_or_default().trim_ascii();
        let Some((before, after)) = self.text.split_once('*') else {
            return name.eq_ignore_ascii_case(self.text.as_bytes());
        };
        let begins = name.get(..before.len());
        let ends = name.len().checked_sub(after.len());
        let ends = ends.filter(|at| *at >= before.len());
        let ends = ends.and_then(|at| name.get(at..));
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(before.as_bytes()))
            && ends.is_some_and(|ends| ends.eq_ignore_ascii_case(after.as_bytes()))
    }
}

impl FromStr for MediaRange {
    type Err = MediaRangeError;

    fn from_str(text: &str) -> Result<Self, MediaRangeError> {
        let (kind, subtype) = text.split_once('/').ok_or(MediaRangeError)?;
        let suffix = subtype.strip_prefix('*');
        let is_rest = |rest: &str| rest.is_empty() || rest.strip_prefix('+').is_some_and(is_token);
        if !is_token(kind) || !suffix.map_or_else(|| is_token(subtype), is_rest) {
            return Err(MediaRangeError);
        }
        Ok(Self {
            text: text.to_ascii_lowercase().into(),
        })
    }
}

fn is_token(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain)
}

impl fmt::Display for MediaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_the_types_that_it_names() {
        let contains = |range: &str, media_type: &str| {
            let range: MediaRange = range.parse().unwrap();
            range.contains(media_type.as_bytes())
        };
        assert!(contains("text/html", "Text/HTML; charset=utf-8"));
        assert!(contains("Text/*", "text/css"));
        assert!(contains("application/*+json", "application/ld+json;x=y"));
        assert!(!contains("text/html", "text/htmlx"));
        assert!(!contains("text/*", "textual/css"));
        assert!(!contains("application/*+json", "application/json"));
        assert!(!contains("application/*+json", "application/+jso"));
        assert!(!contains("text/html", ""));
        for wrong in ["text", "text/", "*/*", "text/*x", "text/*+", "te xt/a"] {
            assert_eq!(wrong.parse::<MediaRange>(), Err(MediaRangeError), "{wrong}");
        }
    }
}
