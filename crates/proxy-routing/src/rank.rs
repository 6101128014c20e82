//! Which of two matching rules wins.

use std::cmp::Reverse;

/// The comparison that one rule won over another, in the order they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// Its priority is higher.
    Priority,
    /// Its path is more specific: exact, then longer prefix, then regex, then none.
    Path,
    /// Its host is more specific: exact, then longer wildcard, then none.
    Host,
    /// More of its header conditions hold.
    Headers,
    /// It stands earlier in the configuration.
    Order,
}

/// What a rule brings to the comparison: the greater wins. Its fields stand in the order in which
/// they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) priority: i32,
    /// How specific the path that matched is.
    pub(crate) path: u32,
    /// How specific the host that matched is.
    pub(crate) host: u32,
    /// Header conditions that hold.
    pub(crate) headers: u32,
    /// The rule's index.
    pub(crate) order: Reverse<u32>,
}

impl Rank {
    /// Why this rank is above `other`.
    pub(crate) fn above(&self, other: &Self) -> Because {
        if self.priority != other.priority {
            Because::Priority
        } else if self.path != other.path {
            Because::Path
        } else if self.host != other.host {
            Because::Host
        } else if self.headers != other.headers {
            Because::Headers
        } else {
            Because::Order
        }
    }

    /// The index of the rule that has this rank.
    pub(crate) fn rule(&self) -> usize {
        usize::try_from(self.order.0).unwrap_or(usize::MAX)
    }
}

/// A length or an index as ranks hold it.
pub(crate) fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX - 1)
}
