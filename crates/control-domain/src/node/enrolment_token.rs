//! Enrolment tokens: credentials by which nodes join a project.

use crate::access::actor::Actor;
use crate::access::creator::Creator;
use crate::access::refusal::Refusal;
use crate::access::refusal::faults::Faults;
use crate::access::{Access, Role, Tenant};
use crate::labels::Labels;
use crate::machine::{Transition, next_state};
use crate::named::named;
use crate::text::Name;
use control_wire::EnrolmentTokenId;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// Default lifetime of a token.
const DEFAULT_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// Maximum lifetime of a token.
const MAX_LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);
/// Permitted number of registrations per token.
const MAX_USES: std::ops::RangeInclusive<i64> = 1..=100_000;

named! {
    /// Validity of an enrolment token.
    #[schema(as = EnrolmentTokenStateName)]
    EnrolmentTokenState {
        /// The token admits nodes.
        Active = "active",
        /// Its maximum number of nodes is reached.
        UsedUp = "used_up",
        /// Its time has passed.
        Expired = "expired",
        /// The token was revoked.
        Revoked = "revoked",
    }
}

named! {
    /// Events of an enrolment token.
    EnrolmentTokenEvent {
        /// The token admits its last node.
        UseUp = "use up",
        /// The current time passes `expires_at`.
        Expire = "expire",
        /// The token is revoked, at once.
        Revoke = "revoke",
    }
}

use EnrolmentTokenEvent::{Expire, Revoke, UseUp};
use EnrolmentTokenState::{Active, Expired, Revoked, UsedUp};

/// Transitions of an enrolment token.
pub const ENROLMENT_TOKEN_TRANSITIONS: &[Transition<EnrolmentTokenState, EnrolmentTokenEvent>] = &[
    Transition::new(Active, UseUp, UsedUp),
    Transition::new(Active, Expire, Expired),
    Transition::new(UsedUp, Expire, Expired),
    Transition::new(Active, Revoke, Revoked),
    Transition::new(UsedUp, Revoke, Revoked),
    Transition::new(Expired, Revoke, Revoked),
];

/// An enrolment token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolmentToken {
    /// UUID of version 7; not secret.
    pub id: EnrolmentTokenId,
    /// The project that nodes join with it.
    pub tenant: Tenant,
    /// Name that says what the token is for.
    pub name: Name,
    /// Maximum number of nodes registered with it.
    pub max_uses: i64,
    /// Number of nodes registered so far.
    pub uses: i64,
    /// Labels that its nodes get.
    pub labels: Labels,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Expiry.
    pub expires_at: Timestamp,
    /// Time of revocation.
    pub revoked_at: Option<Timestamp>,
    /// User that created the token, directly or through an API key; `None` for tokens from before
    /// creators were recorded.
    pub made_by: Option<Creator>,
}

/// Request to create an enrolment token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEnrolmentToken {
    /// Name that says what the token is for.
    pub name: String,
    /// Maximum number of nodes, 1 to 100 000; `None` for 1.
    pub max_uses: Option<i64>,
    /// Labels that its nodes get.
    pub labels: BTreeMap<String, String>,
    /// Time of expiry, at most a year from now; `None` for 24 hours from now.
    pub expires_at: Option<Timestamp>,
}

impl EnrolmentToken {
    /// A new token for `tenant`.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn create(
        actor: &Actor,
        tenant: Tenant,
        id: EnrolmentTokenId,
        new: NewEnrolmentToken,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_NODES, tenant)?;
        let NewEnrolmentToken {
            name,
            max_uses,
            labels,
            expires_at,
        } = new;
        let mut faults = Faults::default();
        let name = faults.record(Name::parse("name", &name));
        let max_uses = max_uses.unwrap_or(1);
        faults.check(
            MAX_USES.contains(&max_uses),
            "max_uses",
            "is not 1 to 100000",
        );
        let labels = faults.record(Labels::parse(labels));
        let expires_at = expires_at.unwrap_or(now + DEFAULT_LIFETIME);
        let is_within = now < expires_at && expires_at <= now + MAX_LIFETIME;
        faults.check(is_within, "expires_at", "is not within a year");
        let (name, labels) = faults.finish(name.zip(labels))?;
        Ok(Self {
            id,
            tenant,
            name,
            max_uses,
            uses: 0,
            labels,
            created_at: now,
            expires_at,
            revoked_at: None,
            made_by: actor.creator(tenant),
        })
    }

    /// State of the token at `now`. A token of a creator that may no longer register nodes counts as
    /// revoked.
    pub fn state(&self, now: Timestamp) -> EnrolmentTokenState {
        if self.revoked_at.is_some() || !Creator::allows(self.made_by, Role::Operator) {
            Revoked
        } else if self.expires_at <= now {
            Expired
        } else if self.max_uses <= self.uses {
            UsedUp
        } else {
            Active
        }
    }

    /// The token under another name.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad name.
    pub fn rename(self, actor: &Actor, name: &str) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_NODES, self.tenant)?;
        let name = Name::parse("name", name)?;
        Ok(Self { name, ..self })
    }

    /// Checks that the actor may delete it.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission.
    pub fn check_delete(&self, actor: &Actor) -> Result<(), Refusal> {
        actor.require(Access::WRITE_NODES, self.tenant)
    }

    /// The token after its revocation.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if it was revoked before.
    pub fn revoke(self, actor: &Actor, now: Timestamp) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_NODES, self.tenant)?;
        let state = self.state(now);
        let next = next_state(ENROLMENT_TOKEN_TRANSITIONS, state, Revoke);
        next.ok_or(Refusal::WrongState {
            noun: "an enrolment token",
            state: state.name(),
            event: "be revoked",
        })?;
        Ok(Self {
            revoked_at: Some(now),
            ..self
        })
    }

    /// The actor that the token authenticates.
    ///
    /// # Errors
    ///
    /// [`Refusal::Ended`] if it was revoked or its time has passed.
    pub fn accept(&self, now: Timestamp) -> Result<Actor, Refusal> {
        let is_used_up = match self.state(now) {
            Active => false,
            UsedUp => true,
            Expired | Revoked => return Err(Refusal::Ended),
        };
        Ok(Actor::Enrolment {
            id: self.id,
            tenant: self.tenant,
            is_used_up,
        })
    }
}
