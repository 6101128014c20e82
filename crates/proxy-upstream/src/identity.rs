//! The name that a target has over reloads.

/// Names one target of this process, in every plan that has it.
///
/// Workers find a target's connections by its slot and compare the epoch before they use one: a slot is
/// used again once its target is gone, an epoch never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId {
    /// Position in tables with an entry for each target, from 0 up.
    pub slot: u32,
    /// Number of the target among all that this process has known, from 0 up.
    pub epoch: u64,
}
