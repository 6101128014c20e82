//! Users, and the identity of the actor.

use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_auth::PasswordHash;
use control_domain::{Access, Actor, NewUser, Refusal, Role, Scope, Tenant, User};
use control_wire::{ApiKeyId, OrgId};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::spawn_blocking;

/// The identity of the actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A user with a session.
    User {
        /// The user.
        user: User,
        /// The user's organizations.
        roles: BTreeMap<OrgId, Role>,
    },
    /// An API key.
    ApiKey {
        /// The key.
        id: ApiKeyId,
        /// Its organization, and the project that it is limited to.
        tenant: Tenant,
        /// Empty: full access.
        scopes: BTreeSet<Scope>,
        /// When it ends.
        expires_at: Option<Timestamp>,
    },
}

impl App {
    /// The identity of the actor.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub async fn identity(&self, call: &Call) -> Result<Identity, Error> {
        call.actor.holds(Access::SignedIn)?;
        match call.actor.clone() {
            Actor::User { id, roles, .. } => {
                let found = self.store.read().await?.user(id).await?;
                let user = found.ok_or(Refusal::NotFound)?.value;
                Ok(Identity::User { user, roles })
            }
            Actor::ApiKey {
                id,
                tenant,
                scopes,
                expires_at,
                made_by: _,
            } => Ok(Identity::ApiKey {
                id,
                tenant,
                scopes,
                expires_at,
            }),
            Actor::System
            | Actor::SetUp { .. }
            | Actor::Invitee { .. }
            | Actor::Enrolment { .. }
            | Actor::Node { .. } => Err(Refusal::WrongCredential.into()),
        }
    }

    /// Hashes the password away from the threads that serve requests.
    pub(crate) async fn hash_password(&self, new: &NewUser) -> Result<PasswordHash, Error> {
        let (password, salt) = (new.password.clone(), self.environment.random());
        let hashed = spawn_blocking(move || password.hash(salt)).await;
        Ok(hashed.map_err(|_| Error::Stopped)??)
    }
}
