//! Invitations: one-time links by which users join an organization.

use crate::access::actor::Actor;
use crate::access::creator::Creator;
use crate::access::refusal::Refusal;
use crate::access::{Access, Role, Tenant};
use crate::org::membership::Membership;
use crate::text::Email;
use control_wire::{InvitationId, OrgId, UserId};
use jiff::{SignedDuration, Timestamp};

/// Lifetime of an invitation.
const LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);

/// An invitation, without its secret. Deleted when accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// UUID of version 7, not the secret of the link.
    pub id: InvitationId,
    /// Organization that the invited person joins.
    pub org: OrgId,
    /// Address that the invitation was sent to: the default for a new user's sign-in, not proven to
    /// be the bearer's.
    pub email: Email,
    /// Role of the new member.
    pub role: Role,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Expiry.
    pub expires_at: Timestamp,
    /// User that created the invitation, directly or through an API key; `None` for invitations
    /// from before creators were recorded.
    pub made_by: Option<Creator>,
}

impl Invitation {
    /// Creates an invitation for a person with this address.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad address.
    pub fn create(
        actor: &Actor,
        org: OrgId,
        id: InvitationId,
        email: &str,
        role: Role,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::CONTROL, Tenant::org(org))?;
        Ok(Self {
            id,
            org,
            email: Email::parse("email", email)?,
            role,
            created_at: now,
            expires_at: now + LIFETIME,
            made_by: actor.creator(Tenant::org(org)),
        })
    }

    /// Checks that the invitation may be withdrawn.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission.
    pub fn check_delete(&self, actor: &Actor) -> Result<(), Refusal> {
        actor.require(Access::CONTROL, self.tenant())
    }

    /// The actor that the link authenticates.
    ///
    /// # Errors
    ///
    /// [`Refusal::Ended`] after seven days, or if its creator no longer administers the
    /// organization.
    pub fn accept(&self, now: Timestamp) -> Result<Actor, Refusal> {
        if self.expires_at <= now || !Creator::allows(self.made_by, Role::Admin) {
            return Err(Refusal::Ended);
        }
        Ok(Actor::Invitee {
            id: self.id,
            tenant: self.tenant(),
        })
    }

    /// The membership of the accepting user. The link decides, not the address of the account.
    pub fn membership(&self, user: UserId, now: Timestamp) -> Membership {
        Membership {
            org: self.org,
            user,
            role: self.role,
            created_at: now,
        }
    }

    /// The organization, as the tenant of its own resources.
    pub fn tenant(&self) -> Tenant {
        Tenant::org(self.org)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_wire::ApiKeyId;
    use std::collections::BTreeSet;
    use uuid::Uuid;

    #[test]
    fn an_invitation_ends_after_seven_days() {
        let now = Timestamp::UNIX_EPOCH;
        let id = InvitationId(Uuid::from_u128(1));
        let org = OrgId(Uuid::from_u128(2));
        let admin = Actor::ApiKey {
            id: ApiKeyId(Uuid::from_u128(3)),
            tenant: Tenant::org(org),
            scopes: BTreeSet::new(),
            expires_at: None,
            made_by: None,
        };
        let made = Invitation::create(&admin, org, id, "A@b", Role::Reader, now);
        let made = made.unwrap();
        assert_eq!(made.email.as_str(), "a@b");
        let day = |days: i64| now + SignedDuration::from_hours(days * 24);
        assert!(made.accept(day(6)).is_ok());
        assert_eq!(made.accept(day(7)), Err(Refusal::Ended));
    }
}
