//! Stored values with versions; pages and sort orders of lists.

use uuid::Uuid;

/// A stored value with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The stored value.
    pub value: T,
    /// 1 at creation; incremented by every write.
    pub version: i64,
}

impl<T> Versioned<T> {
    /// A newly inserted value, of version 1.
    pub fn new(value: T) -> Self {
        Self { value, version: 1 }
    }
}

/// Page of a list by identifier; identifiers grow with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Identifier of the last item on the previous page; `None` for the first page.
    pub after: Option<Uuid>,
    /// Maximum number of items, at least 1.
    pub limit: i64,
    /// Order of the list.
    pub order: PageOrder,
}

/// Order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageOrder {
    /// By creation, oldest first.
    #[default]
    Oldest,
    /// By creation, newest first.
    Newest,
}

impl Page {
    /// The page that follows the item `before`, newest first.
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
    /// Time of creation, for lists with identifiers that do not sort by it.
    CreatedAt,
    /// E-mail address, bytewise.
    Email,
    /// Time of expiry; items without one come last.
    ExpiresAt,
    /// Name, bytewise.
    Name,
    /// The priority of a service.
    Priority,
    /// Time of a node's last heartbeat; 0 before the first.
    SeenAt,
    /// Version of a node's proxy, bytewise; empty before the first heartbeat.
    Version,
}

impl SortColumn {
    /// Returns true if the column's values are texts.
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

/// Value of a sort column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortValue {
    /// A text without NUL characters.
    Text(String),
    /// A number, or a time in milliseconds since 1970.
    Number(i64),
}

/// Sort order of a list; the identifier breaks ties, in the same direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort {
    /// Column that sorts; the identifier breaks ties.
    pub column: SortColumn,
    /// True for descending order.
    pub descending: bool,
    /// Sort value of the previous page's last item; its identifier is [`Page::after`]. The page
    /// begins after both, even if the item was changed or deleted since.
    pub after: Option<SortValue>,
}

/// Filter and order of a list; an absent field does not restrict it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Only this name, or names with this prefix if it ends in `*`. For members and invitations:
    /// the e-mail address.
    pub name: Option<String>,
    /// Sort order; `None` sorts by identifier.
    pub sort: Option<Sort>,
}

impl ListFilter {
    /// Returns true if the filter admits an item of this name.
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
