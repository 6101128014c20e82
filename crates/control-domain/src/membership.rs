//! A membership: a user's role in an organization.

use crate::access::Role;
use control_wire::{OrgId, UserId};
use jiff::Timestamp;

/// A user's role in an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The organization.
    pub org: OrgId,
    /// The user.
    pub user: UserId,
    /// What the user may do there.
    pub role: Role,
    /// When the user joined.
    pub created_at: Timestamp,
}
