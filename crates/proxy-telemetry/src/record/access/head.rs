//! The part of an access record taken from the request's head, encoded while the head exists.

use super::format::{AccessFormat, LineSyntax, OptionalField};
use super::line_format::LineFormat;
use crate::record::json::Line;
use crate::record::redact;
use std::sync::Arc;

/// Maximum capacity of a buffer that is reused, in bytes.
const KEPT_BYTES: usize = 2048;

/// Initial capacity of a buffer, in bytes, enough for most requests.
const BEGUN_BYTES: usize = 384;

/// Number of buffers kept; more are rarely in use at once.
const KEPT_BUFFERS: usize = 128;

/// The end of the path, and the key of the status.
const STATUS_KEY: &str = "\",\"status\":";

/// The logged parts of a request's head.
///
/// `Authorization` and `Cookie` are never logged, even if configured.
#[derive(Clone, Copy, Debug)]
pub struct AccessLogRequest<'a> {
    /// The method, as sent.
    pub method: &'a [u8],
    /// The requested host, as sent.
    pub host: Option<&'a [u8]>,
    /// Path and query, as sent.
    pub path: &'a [u8],
    /// The field `User-Agent`, written if enabled by [`AccessFormat`].
    pub user_agent: Option<&'a [u8]>,
    /// The field `Referer`, written if enabled by [`AccessFormat`].
    pub referer: Option<&'a [u8]>,
}

/// The encoded form for the request's record, so that the head need not be kept.
#[derive(Debug)]
pub struct AccessLogHead {
    bytes: Vec<u8>,
    /// Offset of the optional fields, which end the record.
    optional_at: usize,
    /// Offset in a [`CombinedHead`] of the fields after the sizes; `None` for a record in JSON.
    combined_fields_at: Option<usize>,
    /// Format of a line that replaces the record in JSON.
    line_format: Option<Arc<LineFormat>>,
}

/// The parts of a line of the Combined Log Format taken from the request's head.
#[derive(Clone, Copy, Debug)]
pub(super) struct CombinedHead<'a> {
    /// From the quote that opens the request line to the end of the path.
    pub(super) request: &'a [u8],
    /// `Referer` and `User-Agent`, quoted.
    pub(super) fields: &'a [u8],
}

/// Unused buffers of encoded heads.
#[derive(Debug, Default)]
pub(crate) struct HeadBufferPool(Vec<Vec<u8>>);

impl AccessLogHead {
    /// From the method to the key of the status; the string before it is not closed.
    #[inline]
    pub(in crate::record) fn usual(&self) -> &[u8] {
        self.bytes.get(..self.optional_at).unwrap_or_default()
    }

    /// From the method to the path; the string is not closed.
    pub(in crate::record) fn request(&self) -> &[u8] {
        let usual = self.usual();
        let status = STATUS_KEY.as_bytes();
        usual.strip_suffix(status).unwrap_or(usual)
    }

    /// The parts of a line of the Combined Log Format, if records have that format.
    #[inline]
    pub(super) fn combined(&self) -> Option<CombinedHead<'_>> {
        let at = self.combined_fields_at?;
        let request = self.bytes.get(self.optional_at..at).unwrap_or_default();
        let fields = self.bytes.get(at..).unwrap_or_default();
        Some(CombinedHead { request, fields })
    }

    /// The encoded form, to append fields.
    pub(in crate::record) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The format of a line that replaces the record in JSON.
    #[inline]
    pub(super) fn line_format(&self) -> Option<&LineFormat> {
        self.line_format.as_deref()
    }

    /// The fields that end the record.
    #[inline]
    pub(in crate::record) fn optional(&self) -> &[u8] {
        self.bytes.get(self.optional_at..).unwrap_or_default()
    }
}

impl AccessLogRequest<'_> {
    /// Encodes the head into a buffer of `pool`.
    pub(crate) fn access_head(
        &self,
        format: &AccessFormat,
        pool: &mut HeadBufferPool,
    ) -> AccessLogHead {
        let AccessFormat {
            line: syntax,
            fields,
            redact_query,
        } = format;
        let mut bytes = pool.take();
        let mut line = Line(&mut bytes);
        match self.method {
            b"GET" => line.raw("\",\"method\":\"GET"),
            other => line.open("\",\"method\":\"", other),
        }
        if let Some(host) = self.host {
            line.open("\",\"host\":\"", host);
        }
        line.raw("\",\"path\":\"");
        redact::push_path(line.0, self.path, redact_query);
        line.raw(STATUS_KEY);
        let optional_at = line.0.len();
        let combined_fields_at = if matches!(syntax, LineSyntax::Combined) {
            Some(self.write_combined(&mut line, redact_query))
        } else {
            self.write_optional(&mut line, fields, redact_query);
            None
        };
        AccessLogHead {
            bytes,
            optional_at,
            combined_fields_at,
            line_format: match syntax {
                LineSyntax::Custom(line) => Some(Arc::clone(line)),
                LineSyntax::Json | LineSyntax::Combined => None,
            },
        }
    }

    /// Writes a [`CombinedHead`], and returns the offset of its fields. A quote in a value is
    /// escaped by a backslash, as Apache does.
    fn write_combined(&self, line: &mut Line<'_>, redact: &[String]) -> usize {
        line.open("\"", self.method);
        line.raw(" ");
        redact::push_path(line.0, self.path, redact);
        let fields_at = line.0.len();
        match self.referer {
            Some(referer) => {
                line.raw(" \"");
                redact::push_path(line.0, referer, redact);
            }
            None => line.raw(" \"-"),
        }
        line.text("\" \"", self.user_agent.unwrap_or(b"-"));
        fields_at
    }

    #[inline]
    fn write_optional(&self, line: &mut Line<'_>, fields: &[OptionalField], redact: &[String]) {
        for field in fields {
            match (field, self.user_agent, self.referer) {
                (OptionalField::UserAgent, Some(agent), _) => {
                    line.text(",\"user_agent\":\"", agent);
                }
                (OptionalField::Referer, _, Some(referer)) => {
                    line.raw(",\"referer\":\"");
                    redact::push_path(line.0, referer, redact);
                    line.raw("\"");
                }
                (OptionalField::UserAgent, None, _) | (OptionalField::Referer, _, None) => {}
            }
        }
    }
}

impl HeadBufferPool {
    #[inline]
    fn take(&mut self) -> Vec<u8> {
        let buffer = self.0.pop();
        buffer.unwrap_or_else(|| Vec::with_capacity(BEGUN_BYTES))
    }

    /// Returns the buffer of a head that was written.
    #[inline]
    pub(crate) fn recycle(&mut self, access_head: AccessLogHead) {
        let mut buffer = access_head.bytes;
        if self.0.len() < KEPT_BUFFERS && buffer.capacity() <= KEPT_BYTES {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access_head(path: &[u8], pool: &mut HeadBufferPool) -> AccessLogHead {
        let facts = AccessLogRequest {
            method: b"GET",
            host: None,
            path,
            user_agent: None,
            referer: None,
        };
        facts.access_head(&AccessFormat::default(), pool)
    }

    #[test]
    fn buffers_are_used_again() {
        let mut pool = HeadBufferPool::default();
        for path in [&b"/long"[..], b"/", b"/longer"] {
            let one = access_head(path, &mut pool);
            assert!(pool.0.is_empty());
            let text = String::from_utf8_lossy(path);
            let expected = format!(r#"","method":"GET","path":"{text}","status":"#);
            assert_eq!(one.usual(), expected.as_bytes());
            assert_eq!(one.optional(), b"");
            pool.recycle(one);
            assert_eq!(pool.0.len(), 1);
        }
    }

    #[test]
    fn neither_long_nor_many_buffers_are_kept() {
        let mut pool = HeadBufferPool::default();
        let long = access_head(&[b'a'; 2 * KEPT_BYTES], &mut pool);
        pool.recycle(long);
        assert!(pool.0.is_empty());

        let many: Vec<_> = (0..2 * KEPT_BUFFERS)
            .map(|_| access_head(b"/", &mut pool))
            .collect();
        for one in many {
            pool.recycle(one);
        }
        assert_eq!(pool.0.len(), KEPT_BUFFERS);
    }
}
