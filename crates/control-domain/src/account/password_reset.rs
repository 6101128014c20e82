//! Password resets: one-time links by which members set another password.

use crate::access::actor::Actor;
use crate::access::creator::Creator;
use crate::access::refusal::Refusal;
use crate::access::{Access, Role, Tenant};
use crate::account::session::UserRights;
use crate::account::user::User;
use crate::org::membership::Membership;
use control_wire::{OrgId, UserId};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// Lifetime of a link.
const LIFETIME: SignedDuration = SignedDuration::from_hours(24);

/// A password reset, without the secret of its link. Deleted when used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordReset {
    /// Identifier, not the secret of the link.
    pub id: Uuid,
    /// User that may set another password.
    pub user: UserId,
    /// Organization of the administrator that created it.
    pub org: OrgId,
    /// Administrator that created it, directly or through an API key.
    pub made_by: Option<Creator>,
    /// Expiry.
    pub ends_at: Timestamp,
}

impl PasswordReset {
    /// Creates a reset for a member that the actor controls.
    pub fn new(actor: &Actor, id: Uuid, membership: &Membership, now: Timestamp) -> Self {
        Self {
            id,
            user: membership.user,
            org: membership.org,
            made_by: actor.creator(membership.tenant()),
            ends_at: now + LIFETIME,
        }
    }

    /// Checks that the link is still valid.
    ///
    /// # Errors
    ///
    /// [`Refusal::Ended`] after 24 hours, or if its creator no longer administers the organization.
    pub fn check(&self, now: Timestamp) -> Result<(), Refusal> {
        let stands = now < self.ends_at && Creator::allows(self.made_by, Role::Admin);
        stands.then_some(()).ok_or(Refusal::Ended)
    }
}

impl Membership {
    /// Checks that the actor may change the member's credentials. A user may be a member of several
    /// organizations, and the actor must control all of them: otherwise an administrator of one
    /// could sign in to another as that user.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or [`Refusal::SharedMember`].
    pub fn control_sign_in(
        &self,
        actor: &Actor,
        user: &User,
        rights: &UserRights,
    ) -> Result<(), Refusal> {
        actor.require(Access::CONTROL, self.tenant())?;
        if actor.holds(Access::InstanceAdmin).is_ok() {
            return Ok(());
        }
        let controls = |org: &OrgId| actor.require(Access::CONTROL, Tenant::org(*org)).is_ok();
        let is_own = !user.instance_admin && rights.roles.keys().all(controls);
        is_own.then_some(()).ok_or(Refusal::SharedMember)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Email, Name};
    use control_wire::SessionId;
    use std::collections::{BTreeMap, BTreeSet};

    const ORG: OrgId = OrgId(Uuid::from_u128(1));
    const OTHER: OrgId = OrgId(Uuid::from_u128(2));
    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn admin(orgs: &[OrgId], instance_admin: bool) -> Actor {
        Actor::User {
            id: UserId(Uuid::from_u128(3)),
            session: SessionId(Uuid::from_u128(4)),
            instance_admin,
            roles: orgs.iter().map(|org| (*org, Role::Admin)).collect(),
            project_roles: BTreeMap::new(),
            locked: BTreeSet::new(),
            is_fresh: true,
            owns_account: true,
        }
    }

    fn member() -> Membership {
        Membership {
            org: ORG,
            user: UserId(Uuid::from_u128(5)),
            role: Role::Reader,
            created_at: NOW,
        }
    }

    #[test]
    fn an_administrator_controls_only_members_without_rights_elsewhere() {
        let user = |instance_admin| User {
            id: member().user,
            email: Email::stored("a@b".to_owned()),
            name: Name::stored("A".to_owned()),
            password: None,
            instance_admin,
            created_at: NOW,
        };
        let rights = |orgs: &[OrgId]| UserRights {
            roles: orgs.iter().map(|org| (*org, Role::Reader)).collect(),
            ..UserRights::default()
        };
        let shared = Err(Refusal::SharedMember);
        for (actor, user, rights, found) in [
            (admin(&[ORG], false), user(false), rights(&[ORG]), Ok(())),
            (
                admin(&[ORG], false),
                user(false),
                rights(&[ORG, OTHER]),
                shared.clone(),
            ),
            (
                admin(&[ORG, OTHER], false),
                user(false),
                rights(&[ORG, OTHER]),
                Ok(()),
            ),
            (admin(&[ORG], false), user(true), rights(&[ORG]), shared),
            (
                admin(&[ORG], true),
                user(true),
                rights(&[ORG, OTHER]),
                Ok(()),
            ),
        ] {
            assert_eq!(member().control_sign_in(&actor, &user, &rights), found);
        }
        let stranger = admin(&[OTHER], true);
        let found = member().control_sign_in(&stranger, &user(false), &rights(&[ORG]));
        assert_eq!(found, Err(Refusal::NotFound));
    }

    #[test]
    fn a_link_ends_after_a_day_and_with_its_maker() {
        let link = PasswordReset::new(&admin(&[ORG], false), Uuid::nil(), &member(), NOW);
        assert_eq!(link.check(NOW + SignedDuration::from_hours(23)), Ok(()));
        let late = link.check(NOW + SignedDuration::from_hours(24));
        assert_eq!(late, Err(Refusal::Ended));
        let demoted = Creator {
            role: Some(Role::Operator),
            ..link.made_by.unwrap()
        };
        let orphan = PasswordReset {
            made_by: Some(demoted),
            ..link
        };
        assert_eq!(orphan.check(NOW), Err(Refusal::Ended));
    }
}
