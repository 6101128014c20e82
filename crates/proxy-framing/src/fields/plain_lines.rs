//! The fast path for field lines in common form, without a test of each byte.

use super::{Fields, Section};
use crate::chars::plain;
use crate::fields::correlation::Correlation;
use crate::fields::names::{self, KnownField};
use crate::input::Input;
use crate::limits::HeadLimits;
use crate::scan::lines::{FieldLine, Lines};

impl Fields {
    /// Consumes lines that are whole, plain and within the limits, and stops before any other; true
    /// if the empty line was consumed too. Records the position of each in `lines`.
    pub(crate) fn plain_lines(
        &mut self,
        input: &mut Input<'_>,
        limits: &HeadLimits,
        correlation: &mut Correlation,
        mut lines: Option<&mut Lines>,
    ) -> bool {
        if let Some(lines) = &mut lines {
            lines.begin(input.at);
        }
        let shortest = limits.max_name_bytes.min(limits.max_value_bytes) as usize;
        let whole = input.rest();
        let window = whole.get(..self.room(limits) as usize).unwrap_or(whole);
        let mut rest = window;
        let mut more = limits.max_header_count - self.count;
        while 0 < more
            && let Some((line, after)) = plain::line(rest)
        {
            let length = rest.len() - after.len();
            if shortest < length && !line_fits(line, limits) {
                break;
            }
            let at = input.at + window.len() - rest.len();
            if names::looks_known(rest, line.name_len)
                && !self.plain_value(rest, line, at, correlation)
            {
                break;
            }
            if let Some(lines) = &mut lines {
                lines.fields.push(FieldLine {
                    from: at,
                    colon: at + line.name_len,
                    end: at + length - 1,
                });
            }
            more -= 1;
            rest = after;
        }
        let taken = window.len() - rest.len();
        self.count = limits.max_header_count - more;
        self.size += u32::try_from(taken).unwrap_or(u32::MAX);
        input.at += taken;
        let done = input.rest().starts_with(b"\r\n") && self.may_end().is_ok();
        input.at += if done { 2 } else { 0 };
        if let Some(lines) = lines.filter(|_| done) {
            lines.end = input.at;
        }
        done
    }

    /// Reads the value of the line at the beginning of `bytes`, which is at `at` in the input;
    /// false, without a change, if it is not in common form.
    #[inline(never)]
    fn plain_value(
        &mut self,
        bytes: &[u8],
        line: plain::Line,
        at: usize,
        correlation: &mut Correlation,
    ) -> bool {
        let name = bytes.get(..line.name_len).unwrap_or_default();
        let space = usize::from(bytes.get(line.name_len + 1) == Some(&b' '));
        let start = line.name_len + 1 + space;
        let from_value = bytes.get(start..).unwrap_or_default();
        let value = from_value.get(..line.value_len).unwrap_or_default();
        match (names::known(name), self.section) {
            (KnownField::Other, _) | (KnownField::CorrelationId, Section::Trailers) => true,
            (_, Section::Trailers) => false,
            (KnownField::ContentLength, _) => {
                plain::number(value).is_some_and(|length| self.length(length).is_ok())
            }
            (KnownField::TransferEncoding, _) => {
                names::same(value, b"chunked") && self.chunked().is_ok()
            }
            (_, Section::Response(_)) => true,
            (KnownField::Host, Section::Request(_)) => {
                plain::host(from_value, line.value_len) && self.host().is_ok()
            }
            (KnownField::Connection, Section::Request(_)) => {
                names::same(value, b"keep-alive") || names::same(value, b"close")
            }
            (KnownField::Upgrade, Section::Request(_)) => {
                self.upgrade = true;
                true
            }
            (KnownField::CorrelationId, Section::Request(_)) => {
                correlation.set_range(at + start, at + start + line.value_len);
                true
            }
        }
    }
}

/// Returns true if a long line's name and value are within their limits.
fn line_fits(line: plain::Line, limits: &HeadLimits) -> bool {
    line.name_len <= limits.max_name_bytes as usize
        && line.value_len <= limits.max_value_bytes as usize
}
