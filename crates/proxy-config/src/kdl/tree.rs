//! The syntax tree of a KDL document.

/// A version of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    V1,
    V2,
}

/// A range of the text, in bytes. Texts are at most 16 MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

/// A node: a name, its arguments and properties, and the nodes in its braces.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// A type annotation, parentheses included.
    pub(crate) annotation: Option<Span>,
    pub(crate) name: Name,
    pub(crate) entries: Vec<Entry>,
    pub(crate) children: Option<Vec<Node>>,
    /// From the name to the last entry, without the block.
    pub(crate) head: Span,
    /// The block, braces included; empty without a block.
    pub(crate) block: Span,
}

/// A name of a node or a property.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: Box<str>,
    pub(crate) span: Span,
}

/// A property, or an argument if it has no name.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Option<Name>,
    /// A type annotation, parentheses included.
    pub(crate) annotation: Option<Span>,
    pub(crate) value: Value,
    /// The value without the name.
    pub(crate) span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(Box<str>),
    Integer(i128),
    Decimal(f64),
    Flag(bool),
    Null,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let short = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            start: short(start),
            end: short(end),
        }
    }

    /// Offset of the first byte.
    pub(crate) const fn start(self) -> usize {
        self.start as usize
    }

    /// Offset after the last byte.
    pub(crate) const fn end(self) -> usize {
        self.end as usize
    }

    /// From the start of `self` to the end of `other`.
    pub(crate) const fn to(self, other: Self) -> Self {
        Self {
            start: self.start,
            end: other.end,
        }
    }
}
