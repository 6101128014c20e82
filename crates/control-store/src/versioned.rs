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

/// Page of a list, by identifiers, which only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The last identifier of the page before.
    pub after: Option<Uuid>,
    /// Maximum number, at least 1.
    pub limit: i64,
    /// Order of the list.
    pub order: PageOrder,
}

/// Order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageOrder {
    /// In the order of creation.
    #[default]
    Oldest,
    /// The newest first.
    Newest,
}

impl Page {
    /// The page of a list with the newest first that follows the item `before`.
    pub fn newest(before: Option<Uuid>, limit: i64) -> Self {
        Self {
            after: before,
            limit,
            order: PageOrder::Newest,
        }
    }
}
