//! Password changes by users.

use crate::account::session::own_session;
use crate::account::user::own_user;
use crate::account::user_event::UserEvent;
use crate::app::App;
use crate::app::permits::PasswordOwner;
use crate::call::Call;
use crate::error::Error;
use control_auth::{Password, PasswordHash, Secret};
use control_domain::{Access, Refusal, User};
use serde_json::json;

impl App {
    /// Changes the user's password and ends all other sessions of the user; returns the new secret
    /// of this session.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::NoPassword`] for users of an identity provider.
    pub async fn change_password(&self, call: &Call, password: Password) -> Result<Secret, Error> {
        call.actor.holds(Access::FreshSession)?;
        let (id, session) = own_session(call)?;
        let mut tx = self.store.read().await?;
        let found = own_user(&mut tx, call).await?;
        let orgs = tx.org_names_of_user(id).await?;
        drop(tx);
        if found.value.password.is_none() {
            return Err(Refusal::NoPassword.into());
        }
        found.value.check_password(&password, &orgs)?;
        let hash = self.hash_password(&password).await?;
        let user = User {
            password: Some(hash),
            ..found.value
        };
        let mut tx = self.store.begin().await?;
        tx.update_user(&user, found.version).await?;
        let ended = tx.revoke_sessions(id, Some(session), call.now).await?;
        tx.delete_password_reset(id).await?;
        let after = json!({"sessions_ended": ended});
        let event = UserEvent::new("password.changed", id).with(&after);
        self.record_for_user(&mut tx, call, event).await?;
        let own = tx.session(session).await?.ok_or(Refusal::Ended)?;
        let method = own.origin.method;
        self.strengthen(tx, call, own, method).await
    }

    /// Hashes the password on a thread that serves no requests.
    pub(crate) async fn hash_password(&self, password: &Password) -> Result<PasswordHash, Error> {
        let (password, salt) = (password.clone(), self.environment.random());
        let mut permit = self.passwords.acquire(PasswordOwner::Known).await?;
        let hashed = tokio::task::spawn_blocking(move || password.hash_in(permit.memory(), salt));
        let hashed = hashed.await;
        Ok(hashed.map_err(|_| Error::Stopped)??)
    }
}
