//! Conversion of byte offsets to lines and columns.

use crate::kdl::Span;
use proxy_model::{FileId, Place};

/// Bytes between two counts of characters: the maximum that a lookup reads.
const STRIDE_BYTES: usize = 1_024;

/// The offsets at which the lines of one file begin.
#[derive(Debug)]
pub(crate) struct Lines {
    starts: Vec<usize>,
    /// Number of characters before each [`STRIDE_BYTES`]th byte; empty if all characters are ASCII.
    counts: Vec<usize>,
}

impl Lines {
    pub(crate) fn new(text: &str) -> Self {
        let after = |(at, _): (usize, &str)| at + 1;
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(after));
        let counts = if text.is_ascii() {
            Vec::new()
        } else {
            counts(text)
        };
        Self {
            starts: starts.collect(),
            counts,
        }
    }

    /// The place of `span` in `text`, from which these lines were made.
    pub(crate) fn place(&self, file: FileId, text: &str, span: Span) -> Place {
        let start = span.start().min(text.len());
        let line = self.starts.partition_point(|at| *at <= start);
        let line_start = self.starts.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        let column = self.characters(text, start) - self.characters(text, line_start) + 1;
        Place {
            file,
            offset: short(start),
            len: short(span.end().saturating_sub(start)),
            line: short(line),
            column: short(column),
        }
    }

    fn characters(&self, text: &str, at: usize) -> usize {
        let Some(before) = self.counts.get(at / STRIDE_BYTES) else {
            return at;
        };
        let rest = text
            .as_bytes()
            .get(at - at % STRIDE_BYTES..at)
            .unwrap_or_default();
        before + rest.iter().filter(|byte| is_first(**byte)).count()
    }
}

fn counts(text: &str) -> Vec<usize> {
    let mut so_far = 0;
    let chunks = text.as_bytes().chunks(STRIDE_BYTES);
    let mut counts: Vec<usize> = chunks
        .map(|chunk| {
            let before = so_far;
            so_far += chunk.iter().filter(|byte| is_first(**byte)).count();
            before
        })
        .collect();
    counts.push(so_far);
    counts
}

/// Returns true if a byte is the first of a character in UTF-8.
const fn is_first(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

/// Narrows an offset; files are at most 16 MiB.
fn short(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_and_column(text: &str, at: usize) -> (u32, u32) {
        let place = Lines::new(text).place(FileId(0), text, Span::new(at, at));
        (place.line, place.column)
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        let text = "a\nbc\r\n\nd";
        let places = [
            (0, (1, 1)),
            (2, (2, 1)),
            (3, (2, 2)),
            (6, (3, 1)),
            (7, (4, 1)),
            (8, (4, 2)),
        ];
        for (at, place) in places {
            assert_eq!(line_and_column(text, at), place, "{at}");
        }
    }

    #[test]
    fn columns_count_characters_even_far_along_a_line() {
        let text = "é".repeat(3_000);
        for characters in [0, 1, 511, 512, 513, 2_999, 3_000] {
            let column = u32::try_from(characters + 1).unwrap();
            assert_eq!(line_and_column(&text, characters * 2), (1, column));
        }
    }
}
