//! A rule that may match, with its best rank.

use crate::rank::Rank;

/// A rule with a host and a path that are known to match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// The rule's best rank: the rank if all header conditions hold.
    pub(crate) bound: Rank,
    /// The rule has conditions only on host and path.
    pub(crate) bare: bool,
}
