//! The set-up link: access for the first administrator, instead of a default password.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// Lifetime of a link.
const LIFETIME: SignedDuration = SignedDuration::from_hours(24);

/// A one-time link, without its secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetupLink {
    /// Identifier, not the secret of the link.
    pub id: Uuid,
    /// Time when the link was created.
    pub created_at: Timestamp,
}

impl SetupLink {
    /// The actor that the link authenticates.
    ///
    /// # Errors
    ///
    /// [`Refusal::Ended`] after 24 hours.
    pub fn accept(&self, now: Timestamp) -> Result<Actor, Refusal> {
        if self.created_at + LIFETIME <= now {
            return Err(Refusal::Ended);
        }
        Ok(Actor::SetUp { id: self.id })
    }
}
