//! Positions of the lines of a head.

/// Positions of the lines of one head, or of one section of fields, in bytes from its beginning.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Offset after the start line; 0 in a section without one.
    pub start: usize,
    /// The field lines, in order.
    pub fields: Vec<FieldLine>,
    /// Offset after the empty line; 0 while it is unknown.
    pub end: usize,
}

/// The position of a field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLine {
    /// Offset of the first byte.
    pub from: usize,
    /// Offset of the colon.
    pub colon: usize,
    /// Offset of the line feed.
    pub end: usize,
}

impl Lines {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            start: 0,
            fields: Vec::new(),
            end: 0,
        }
    }

    /// Clears the positions, for a head with fields from `start` on.
    pub fn begin(&mut self, start: usize) {
        self.start = start;
        self.fields.clear();
        self.end = 0;
    }
}
