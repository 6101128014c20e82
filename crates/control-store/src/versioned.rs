//! Values with the count of their writes, pages of them, and orders of lists.

use uuid::Uuid;

/// A stored value, and how often it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The stored value.
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
    /// Descending by identifier, so by time of creation.
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

/// Column that a list can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortColumn {
    /// The time of a node's event, by the node's clock.
    At,
    /// The batch of a rollout's node, from 1.
    Batch,
    /// The time at which the item was made, of lists that are not in that order by their identifiers.
    CreatedAt,
    /// The e-mail address, in the order of bytes.
    Email,
    /// The time of expiry; items without one come last.
    ExpiresAt,
    /// The name, in the order of bytes.
    Name,
    /// The priority of a service.
    Priority,
    /// The last heartbeat of a node; 0 before the first one.
    SeenAt,
    /// The version of a node's proxy, in the order of bytes; empty before the first heartbeat.
    Version,
}

impl SortColumn {
    /// Returns true if its values are texts.
    pub fn is_text(self) -> bool {
        match self {
            Self::Email | Self::Name | Self::Version => true,
            Self::At
            | Self::Batch
            | Self::CreatedAt
            | Self::ExpiresAt
            | Self::Priority
            | Self::SeenAt => false,
        }
    }
}

/// Value of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortValue {
    /// A text, without the character NUL.
    Text(String),
    /// A number, or a time in milliseconds since 1970.
    Number(i64),
}

/// Order of a list by a column, and of equal values by identifier, in the same direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort {
    /// Column that sorts; the identifier breaks ties.
    pub column: SortColumn,
    /// True if the greatest value comes first.
    pub descending: bool,
    /// The value of the last item of the page before, with the identifier [`Page::after`]. The page begins after it
    /// even if the item was changed or deleted since.
    pub after: Option<SortValue>,
}

/// Filter and order of a list; absent fields admit all, in the order of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Limits the list to this name, or to a prefix that ends in `*`. Of members and invitations: the e-mail address.
    pub name: Option<String>,
    /// Another order than by identifier.
    pub sort: Option<Sort>,
}

impl ListFilter {
    /// Returns true if the list has items of this name.
    pub fn admits(&self, name: &str) -> bool {
        match self.name.as_deref() {
            None => true,
            Some(wanted) => match wanted.strip_suffix('*') {
                Some(begin) => name.starts_with(begin),
                None => name == wanted,
            },
        }
    }
}
