//! Users, and the identity of the actor.

use crate::account::user_event::UserEvent;
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_domain::{Access, Actor, Refusal, Role, Scope, Tenant, User};
use control_store::{Transaction, Versioned};
use control_wire::{ApiKeyId, OrgId};
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The identity of the actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A user with a session.
    User {
        /// The signed-in user.
        user: User,
        /// Role in each of the user's organizations.
        roles: BTreeMap<OrgId, Role>,
        /// The user's version, for `If-Match`.
        version: i64,
    },
    /// An API key.
    ApiKey {
        /// Identifier of the key.
        id: ApiKeyId,
        /// The key's organization, and the project that it is limited to.
        tenant: Tenant,
        /// Empty: full access.
        scopes: BTreeSet<Scope>,
        /// Time of expiry; `None` if the key does not expire.
        expires_at: Option<Timestamp>,
    },
}

impl App {
    /// The identity of the actor.
    pub async fn identity(&self, call: &Call) -> Result<Identity, Error> {
        call.actor.holds(Access::SignedIn)?;
        match call.actor.clone() {
            Actor::User { id, roles, .. } => {
                let found = self.store.read().await?.user(id).await?;
                let Versioned { value, version } = found.ok_or(Refusal::NotFound)?;
                Ok(Identity::User {
                    user: value,
                    roles,
                    version,
                })
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

    /// Renames the user of the session.
    pub async fn rename_user(&self, call: &Call, name: &str) -> Result<(), Error> {
        call.actor.require_account_owner()?;
        let mut tx = self.store.begin().await?;
        let found = own_user(&mut tx, call).await?;
        call.expect_version(found.version)?;
        let before = json!({"name": found.value.name.as_str()});
        let user = found.value.rename(&call.actor, name)?;
        tx.update_user(&user, found.version).await?;
        let event = UserEvent {
            action: "user.renamed",
            user: user.id,
            subject: user.id.0,
            before: Some(&before),
            after: Some(&json!({"name": user.name.as_str()})),
        };
        self.commit_for_user(tx, call, event).await
    }
}

/// The user of the session that authenticated the call.
pub(crate) async fn own_user(tx: &mut Transaction, call: &Call) -> Result<Versioned<User>, Error> {
    call.actor.holds(Access::Session)?;
    let Actor::User { id, .. } = call.actor else {
        return Err(Refusal::WrongCredential.into());
    };
    Ok(tx.user(id).await?.ok_or(Refusal::NotFound)?)
}
