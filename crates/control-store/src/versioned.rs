//! Values with the count of their writes, and pages of them.

use uuid::Uuid;

/// A stored value, and how often it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The value.
    pub value: T,
    /// 1 when new; grows with every write.
    pub version: i64,
}

impl<T> Versioned<T> {
    /// A value that was inserted now.
    pub fn new(value: T) -> Self {
        Self { value, version: 1 }
    }
}

/// Which part of a list: in the order of identifiers, which only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The last identifier of the page before.
    pub after: Option<Uuid>,
    /// At most so many, 1 or more.
    pub limit: i64,
}

impl Page {
    /// A page of a list in the opposite order: its statement compares `id < after`, and the newest come first.
    pub(crate) fn before(before: Option<Uuid>, limit: i64) -> Self {
        Self {
            after: Some(before.unwrap_or(Uuid::max())),
            limit,
        }
    }
}
