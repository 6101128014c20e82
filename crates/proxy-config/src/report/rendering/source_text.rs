//! The text of a file as a terminal may show it.

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use proxy_model::SourceFile;
use std::borrow::Cow;

/// Characters of a long line that are shown before a place.
const MAX_CHARS_BEFORE: usize = 40;
/// Characters of a long line that are shown from the beginning of a place on.
const MAX_CHARS_AFTER: usize = 80;

/// A file's name and text. Each character that could control a terminal is replaced by a harmless
/// one of the same length, so that places stay valid.
#[derive(Debug)]
pub(super) struct SourceText<'f> {
    name: Cow<'f, str>,
    text: Cow<'f, str>,
}

impl<'f> SourceText<'f> {
    pub(super) fn new(file: &'f SourceFile) -> Self {
        Self {
            name: harmless(&file.name),
            text: harmless(&file.text),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The displayed part of `offset..offset + len`: at most to the end of the text and
    /// [`MAX_CHARS_AFTER`] characters.
    pub(super) fn shown(&self, offset: u32, len: u32) -> Option<SourceSpan> {
        let start = usize::try_from(offset).ok()?;
        let rest = self.text.get(start..)?;
        let len = usize::try_from(len).ok()?.min(rest.len());
        let most = end_of_first(rest, MAX_CHARS_AFTER);
        Some(SourceSpan::from((start, len.min(most))))
    }
}

impl SourceCode for SourceText<'_> {
    /// Exactly the line of `span`, cut to the width of a terminal; the span alone if no context is
    /// requested.
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        _lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let text = &*self.text;
        let (start, end) = (span.offset(), span.offset() + span.len());
        let (Some(before), Some(within), Some(after)) =
            (text.get(..start), text.get(start..end), text.get(end..))
        else {
            return Err(MietteError::OutOfBounds);
        };
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (mut first, mut last) = (start, end);
        if lines_before > 0 {
            let tail = after.split('\n').next().unwrap_or_default();
            let tail = tail.trim_end_matches('\r');
            let lead = text.get(line_start..start).unwrap_or_default();
            let length = [lead, within, tail].map(|part| part.chars().count());
            if length.iter().sum::<usize>() <= MAX_CHARS_BEFORE + MAX_CHARS_AFTER {
                (first, last) = (line_start, end + tail.len());
            } else {
                let room = MAX_CHARS_AFTER.saturating_sub(within.chars().count());
                first = line_start + start_of_last(lead, MAX_CHARS_BEFORE);
                last = end + end_of_first(tail, room);
            }
        }
        let data = text.get(first..last).unwrap_or_default();
        let skipped = text.get(line_start..first).unwrap_or_default();
        let newlines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.to_string(),
            data.as_bytes(),
            SourceSpan::from((first, last - first)),
            newlines(text.get(..line_start).unwrap_or_default()),
            skipped.chars().count(),
            newlines(data) + 1,
        )))
    }
}

/// Start of the last `count` characters.
fn start_of_last(text: &str, count: usize) -> usize {
    let mut starts = text.char_indices().rev();
    starts.nth(count.saturating_sub(1)).map_or(0, |(at, _)| at)
}

/// End of the first `count` characters.
fn end_of_first(text: &str, count: usize) -> usize {
    let mut starts = text.char_indices();
    starts.nth(count).map_or(text.len(), |(at, _)| at)
}

fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let replaced = text.chars().map(|c| match (is_unsafe(c), c.len_utf8()) {
        (false, _) => c,
        (true, 1) => '?',
        (true, 2) => '¿',
        (true, _) => '\u{fffd}',
    });
    Cow::Owned(replaced.collect())
}

/// Returns true if a character could control a terminal.
pub(super) fn is_unsafe(c: char) -> bool {
    !matches!(c, '\n' | '\t' | '\r') && (c.is_control() || crate::kdl::is_forbidden(c))
}
