//! What a KDL document is once it is read.

/// A version of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    V1,
    V2,
}

/// A stretch of the text, in bytes. Texts are far smaller than 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

/// One node: a name, its arguments and properties, and the nodes in its braces.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// A type annotation, braces included.
    pub(crate) annotation: Option<Span>,
    pub(crate) name: Name,
    pub(crate) entries: Vec<Entry>,
    pub(crate) children: Option<Vec<Node>>,
    /// From the name to the last entry; the block is not in it.
    pub(crate) head: Span,
    /// The block, braces included; empty where there is none.
    pub(crate) block: Span,
}

/// A name of a node or a property.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: Box<str>,
    pub(crate) span: Span,
}

/// An argument, or a property when it has a name.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Option<Name>,
    /// A type annotation, braces included.
    pub(crate) annotation: Option<Span>,
    pub(crate) value: Value,
    /// The value alone.
    pub(crate) span: Span,
}

/// A value.
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

    /// The first byte.
    pub(crate) const fn start(self) -> usize {
        self.start as usize
    }

    /// The byte behind the last.
    pub(crate) const fn end(self) -> usize {
        self.end as usize
    }

    /// From the beginning of this one to the end of the other.
    pub(crate) const fn to(self, other: Self) -> Self {
        Self {
            start: self.start,
            end: other.end,
        }
    }
}
