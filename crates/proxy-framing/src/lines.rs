//! Where the lines of a head are.

/// Where the lines of one head, or of one section of fields, are: in bytes from its beginning.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The first byte behind the start line; 0 in a section without one.
    pub start: usize,
    /// The field lines, in their order.
    pub fields: Vec<FieldLine>,
    /// The first byte behind the empty line; 0 while it is not known.
    pub end: usize,
}

/// Where a field line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLine {
    /// Its first byte.
    pub from: usize,
    /// Its colon.
    pub colon: usize,
    /// Its line feed.
    pub end: usize,
}

impl Lines {
    /// Nothing is known yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            start: 0,
            fields: Vec::new(),
            end: 0,
        }
    }

    /// Begins anew, with a start line that ends before `start`.
    pub fn begin(&mut self, start: usize) {
        self.start = start;
        self.fields.clear();
        self.end = 0;
    }
}
