//! A piece of a connection's bytes and the position in it.

/// A piece of a connection's bytes. After an error `at` is the position of the refused byte.
#[derive(Debug)]
pub(crate) struct Input<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

/// The result of reading a part of a message from an [`Input`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The input is used up and the part continues.
    Incomplete,
    /// The part is complete; the rest of the input belongs to the next one.
    Done,
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Skips at most `most` bytes and returns how many.
    pub(crate) fn skip(&mut self, most: u64) -> u64 {
        let left = self.bytes.len().saturating_sub(self.at);
        let step = usize::try_from(most).unwrap_or(usize::MAX).min(left);
        self.at += step;
        step as u64
    }
}
