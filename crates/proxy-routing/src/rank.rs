//! Precedence among matching rules.

use std::cmp::Reverse;

/// The comparison that decided between two rules, in the order of comparing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidingRank {
    /// The priority is higher.
    Priority,
    /// The host is more specific: exact, then longer wildcard, then none.
    Host,
    /// The path is more specific: exact, then regex, then longer prefix, then none.
    Path,
    /// More conditions on method, headers and query hold.
    Conditions,
    /// The rule is earlier in the configuration.
    Order,
}

/// The rank of a rule for a request: the greater wins. Fields are in the order of comparing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) priority: i32,
    /// Specificity of the matching host.
    pub(crate) host: u32,
    /// Specificity of the matching path.
    pub(crate) path: u32,
    /// Number of conditions on method, headers and query that hold.
    pub(crate) conditions: u32,
    /// The rule's index.
    pub(crate) order: Reverse<u32>,
}

impl Rank {
    /// The comparison that puts this rank above `other`.
    pub(crate) fn above(&self, other: &Self) -> DecidingRank {
        if self.priority != other.priority {
            DecidingRank::Priority
        } else if self.host != other.host {
            DecidingRank::Host
        } else if self.path != other.path {
            DecidingRank::Path
        } else if self.conditions != other.conditions {
            DecidingRank::Conditions
        } else {
            DecidingRank::Order
        }
    }

    /// The index of the rule with this rank.
    pub(crate) fn rule(&self) -> usize {
        usize::try_from(self.order.0).unwrap_or(usize::MAX)
    }
}

/// A length or an index in the type that ranks use.
pub(crate) fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX - 1)
}
