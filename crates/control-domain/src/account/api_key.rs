//! API keys: credentials of operators and pipelines.

use crate::access::actor::Actor;
use crate::access::creator::Creator;
use crate::access::refusal::Refusal;
use crate::access::refusal::faults::Faults;
use crate::access::{Access, Role, Scope, Tenant};
use crate::machine::{Transition, next_state};
use crate::named::named;
use crate::text::Name;
use control_wire::ApiKeyId;
use jiff::Timestamp;
use std::collections::BTreeSet;

named! {
    /// Validity of an API key.
    #[schema(as = ApiKeyStateName)]
    ApiKeyState {
        /// It is accepted.
        Active = "active",
        /// Its time has passed.
        Expired = "expired",
        /// It was revoked.
        Revoked = "revoked",
        /// It was deleted.
        Deleted = "deleted",
    }
}

named! {
    /// Events of an API key.
    ApiKeyEvent {
        /// The current time passes `expires_at`.
        Expire = "expire",
        /// An administrator revokes it; takes effect immediately.
        Revoke = "revoke",
        /// An administrator deletes it.
        Delete = "delete",
    }
}

/// Transitions of an API key.
pub const API_KEY_TRANSITIONS: &[Transition<ApiKeyState, ApiKeyEvent>] = &[
    Transition::new(
        ApiKeyState::Active,
        ApiKeyEvent::Expire,
        ApiKeyState::Expired,
    ),
    Transition::new(
        ApiKeyState::Active,
        ApiKeyEvent::Revoke,
        ApiKeyState::Revoked,
    ),
    Transition::new(
        ApiKeyState::Expired,
        ApiKeyEvent::Revoke,
        ApiKeyState::Revoked,
    ),
    Transition::new(
        ApiKeyState::Revoked,
        ApiKeyEvent::Delete,
        ApiKeyState::Deleted,
    ),
];

/// An API key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// UUID of version 7; not secret.
    pub id: ApiKeyId,
    /// The key's organization, and the project that it is limited to.
    pub tenant: Tenant,
    /// Name that says what the key is for.
    pub name: Name,
    /// Scopes of the key; empty grants full access.
    pub scopes: BTreeSet<Scope>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of expiry; `None` if the key does not expire.
    pub expires_at: Option<Timestamp>,
    /// Time of revocation.
    pub revoked_at: Option<Timestamp>,
    /// User that created the key, directly or through an API key; `None` for keys from before
    /// creators were recorded.
    pub made_by: Option<Creator>,
}

/// Request to create an API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApiKey {
    /// Name that says what the key is for.
    pub name: String,
    /// Scopes of the key; empty grants full access.
    pub scopes: BTreeSet<Scope>,
    /// Time of expiry; `None` for a key that does not expire.
    pub expires_at: Option<Timestamp>,
}

impl ApiKey {
    /// Creates a key for `tenant`.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, for an invalid field, or if `actor` is a key with fewer
    /// rights.
    pub fn create(
        actor: &Actor,
        tenant: Tenant,
        id: ApiKeyId,
        new: NewApiKey,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_API_KEYS, tenant)?;
        let NewApiKey {
            name,
            scopes,
            expires_at,
        } = new;
        let mut faults = Faults::default();
        let name = faults.record(Name::parse("name", &name));
        let is_future = expires_at.is_none_or(|end| now < end);
        faults.check(is_future, "expires_at", "is not in the future");
        let key = Self {
            id,
            tenant,
            name: faults.finish(name)?,
            scopes,
            created_at: now,
            expires_at,
            revoked_at: None,
            made_by: actor.creator(tenant),
        };
        key.within(actor)?;
        Ok(key)
    }

    /// Checks that the new key has no more scopes than the key that creates it, and no later
    /// expiry. The tenant is checked before.
    fn within(&self, actor: &Actor) -> Result<(), Refusal> {
        let Actor::ApiKey {
            scopes, expires_at, ..
        } = actor
        else {
            return Ok(());
        };
        let full = self.scopes.is_empty();
        if !scopes.is_empty() && (full || !self.scopes.is_subset(scopes)) {
            return Err(Refusal::MoreThanOwn("scopes"));
        }
        if expires_at.is_some_and(|own| self.expires_at.is_none_or(|end| own < end)) {
            return Err(Refusal::MoreThanOwn("time"));
        }
        Ok(())
    }

    /// State of the key at `now`. A key of a user that has left counts as revoked.
    pub fn state(&self, now: Timestamp) -> ApiKeyState {
        if self.revoked_at.is_some() || !Creator::allows(self.made_by, Role::Reader) {
            ApiKeyState::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            ApiKeyState::Expired
        } else {
            ApiKeyState::Active
        }
    }

    /// The key under another name.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad name.
    pub fn rename(self, actor: &Actor, name: &str) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_API_KEYS, self.tenant)?;
        let name = Name::parse("name", name)?;
        Ok(Self { name, ..self })
    }

    /// The key after its revocation.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if it was revoked before.
    pub fn revoke(self, actor: &Actor, now: Timestamp) -> Result<Self, Refusal> {
        actor.require(Access::WRITE_API_KEYS, self.tenant)?;
        self.step(ApiKeyEvent::Revoke, now)?;
        Ok(Self {
            revoked_at: Some(now),
            ..self
        })
    }

    /// Checks that the key may be deleted.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or if it was not revoked before.
    pub fn check_delete(&self, actor: &Actor, now: Timestamp) -> Result<(), Refusal> {
        actor.require(Access::WRITE_API_KEYS, self.tenant)?;
        self.step(ApiKeyEvent::Delete, now)?;
        Ok(())
    }

    /// The actor authenticated by the key.
    ///
    /// # Errors
    ///
    /// [`Refusal::Ended`] unless it is active.
    pub fn accept(self, now: Timestamp) -> Result<Actor, Refusal> {
        if self.state(now) != ApiKeyState::Active {
            return Err(Refusal::Ended);
        }
        Ok(Actor::ApiKey {
            id: self.id,
            tenant: self.tenant,
            scopes: self.scopes,
            expires_at: self.expires_at,
            made_by: self.made_by,
        })
    }

    fn step(&self, event: ApiKeyEvent, now: Timestamp) -> Result<ApiKeyState, Refusal> {
        let state = self.state(now);
        next_state(API_KEY_TRANSITIONS, state, event).ok_or(Refusal::WrongState {
            noun: "an API key",
            state: state.name(),
            event: match event {
                ApiKeyEvent::Expire => "expire",
                ApiKeyEvent::Revoke => "be revoked",
                ApiKeyEvent::Delete => "be deleted: revoke it first",
            },
        })
    }
}
