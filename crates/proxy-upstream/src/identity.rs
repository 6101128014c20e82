//! The identity of a target across reloads.

/// Identifies a target of this process, in every plan that has it.
///
/// Workers find a target's connections by its slot and compare the epoch before they use one: a
/// slot is reused after its target is removed, an epoch never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId {
    /// Index in tables with an entry for each target.
    pub slot: u32,
    /// Number of the target among all of this process, from 0.
    pub epoch: u64,
}
