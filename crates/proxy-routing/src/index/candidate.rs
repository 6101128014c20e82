//! A rule that may match, with its best rank.

use crate::rank::Rank;

/// A rule with a host and a path that are known to match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Its rank if all its header conditions hold, which is its best rank.
    pub(crate) bound: Rank,
    /// True without other conditions.
    pub(crate) bare: bool,
}
