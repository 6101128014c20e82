//! Administrators' control over how members sign in: sessions, second factors, password resets.

use crate::account::session::SessionInfo;
use crate::account::user_event::{UserEvent, Visitor};
use crate::app::App;
use crate::app::audit_event::AuditEvent;
use crate::audit::value::done;
use crate::call::Call;
use crate::call::visit::Visit;
use crate::error::Error;
use control_auth::{Password, Secret};
use control_domain::{Access, Email, Membership, PasswordReset, Refusal, Tenant, User};
use control_store::{EndedCredential, Page, SessionFilter, Transaction, Versioned};
use control_wire::{OrgId, UserId};
use serde_json::json;
use uuid::Uuid;

impl App {
    /// The open sessions of a member.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::SharedMember`] for members with rights beyond the actor's.
    pub async fn member_sessions(
        &self,
        call: &Call,
        org: OrgId,
        id: UserId,
        page: Page,
    ) -> Result<Vec<SessionInfo>, Error> {
        let mut tx = self.store.read().await?;
        let (_, user) = controlled(&mut tx, call, org, id).await?;
        let (id, every) = (user.value.id, SessionFilter::Every);
        let found = tx.sessions_of_user(id, every, page, call.now).await?;
        let info = found.into_iter().map(|session| SessionInfo {
            session,
            is_own: false,
        });
        Ok(info.collect())
    }

    /// Ends all sessions of a member; returns their number.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::SharedMember`] for members with rights beyond the actor's.
    pub async fn end_member_sessions(
        &self,
        call: &Call,
        org: OrgId,
        id: UserId,
    ) -> Result<u64, Error> {
        let mut tx = self.store.begin().await?;
        let (_, user) = controlled(&mut tx, call, org, id).await?;
        let id = user.value.id;
        let ended = tx.revoke_sessions(id, None, call.now).await?;
        let after = json!({"sessions": ended});
        let event = UserEvent::new("session.all_ended", id).with(&after);
        self.commit_for_user(tx, call, event).await?;
        Ok(ended)
    }

    /// Removes a member's second factor and ends its sessions; the next sign-in page reports it.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::NotFound`] if the member has none.
    pub async fn reset_member_second_factor(
        &self,
        call: &Call,
        org: OrgId,
        id: UserId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let (_, user) = controlled(&mut tx, call, org, id).await?;
        self.reset_second_factor(tx, call, user.value.id).await
    }

    /// Creates a password reset for a member; returns the secret of its link, which is shown once.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::SharedMember`] for members with rights beyond the actor's.
    pub async fn create_password_reset(
        &self,
        call: &Call,
        org: OrgId,
        id: UserId,
    ) -> Result<(PasswordReset, Secret), Error> {
        let mut tx = self.store.begin().await?;
        let (membership, user) = controlled(&mut tx, call, org, id).await?;
        let id = Uuid::from_bytes(self.environment.random());
        let reset = PasswordReset::new(&call.actor, id, &membership, call.now);
        let secret = self.new_secret();
        tx.replace_password_reset(&reset, &secret.hash()).await?;
        let event = UserEvent::new("password.reset_link_created", user.value.id);
        self.commit_for_user(tx, call, event).await?;
        Ok((reset, secret))
    }

    /// Sets the password of the link's user and ends all sessions of the user; returns the secret
    /// for the browser's cookie. The user signs in next, with the second factor if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Unauthenticated`] for a link that was used or has ended.
    pub async fn use_password_reset(
        &self,
        visit: &Visit,
        secret: &Secret,
        password: &Password,
    ) -> Result<Secret, Error> {
        let hash = secret.hash();
        let mut tx = self.store.read().await?;
        let reset = find(&mut tx, &hash, visit).await?;
        let user = tx.user(reset.user).await?.ok_or(Error::Unauthenticated)?;
        let orgs = tx.org_names_of_user(reset.user).await?;
        drop(tx);
        user.value.check_password(password, &orgs)?;
        let hashed = self.hash_password(password).await?;
        let mut tx = self.store.begin().await?;
        // The administrator that made the link must still have the right to it.
        let reset = find(&mut tx, &hash, visit).await?;
        let spent = tx.spend_password_reset(reset.id).await;
        spent.map_err(|_| Error::Unauthenticated)?;
        let changed = User {
            password: Some(hashed),
            ..user.value
        };
        tx.update_user(&changed, user.version).await?;
        tx.revoke_sessions(changed.id, None, visit.now).await?;
        tx.forget_browsers(changed.id).await?;
        let browser = self.new_secret();
        tx.note_browser(&browser.hash(), changed.id, visit.now)
            .await?;
        let event = UserEvent::new("password.reset", changed.id);
        let by = Visitor {
            kind: "password_reset",
            id: reset.id,
            name: "password reset link",
        };
        self.commit_visit(tx, visit, by, event).await?;
        Ok(browser)
    }

    /// Sets a user's password on the command line.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::NotFound`] for an unknown address.
    pub async fn set_password(
        &self,
        call: &Call,
        email: &str,
        password: &Password,
    ) -> Result<(), Error> {
        call.actor.holds(Access::System)?;
        let mut tx = self.store.read().await?;
        let found = named(&mut tx, email).await?;
        let orgs = tx.org_names_of_user(found.value.id).await?;
        drop(tx);
        found.value.check_password(password, &orgs)?;
        let hash = self.hash_password(password).await?;
        let user = User {
            password: Some(hash),
            ..found.value
        };
        let mut tx = self.store.begin().await?;
        tx.update_user(&user, found.version).await?;
        tx.delete_password_reset(user.id).await?;
        tx.forget_browsers(user.id).await?;
        tx.revoke_sessions(user.id, None, call.now).await?;
        let event = UserEvent::new("password.reset", user.id);
        self.commit_for_user(tx, call, event).await
    }

    /// Removes a user's second factor, on the command line.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::NotFound`] for an unknown address, or if the user has none.
    pub async fn clear_second_factor(&self, call: &Call, email: &str) -> Result<(), Error> {
        call.actor.holds(Access::System)?;
        let mut tx = self.store.begin().await?;
        let found = named(&mut tx, email).await?;
        self.reset_second_factor(tx, call, found.value.id).await
    }

    /// Ends every session of the installation on the command line.
    pub async fn end_all_sessions(&self, call: &Call) -> Result<u64, Error> {
        call.actor.holds(Access::System)?;
        let tx = self.store.begin().await?;
        self.end_sessions_in(tx, call).await
    }

    /// Ends every session, API key, enrolment token, invitation and link of the installation, on
    /// the command line. After a backup is restored, credentials that were revoked since would be
    /// valid again. Returns the number of sessions, and the number of other credentials.
    pub async fn end_all_credentials(
        &self,
        call: &Call,
    ) -> Result<(u64, Vec<EndedCredential>), Error> {
        call.actor.holds(Access::System)?;
        let mut tx = self.store.begin().await?;
        let ended = tx.end_every_credential(call.now).await?;
        self.record_ended(&mut tx, call, ended.clone()).await?;
        let sessions = self.end_sessions_in(tx, call).await?;
        Ok((sessions, ended))
    }

    async fn end_sessions_in(&self, mut tx: Transaction, call: &Call) -> Result<u64, Error> {
        let ended = tx.revoke_every_session(call.now).await?;
        let after = json!({"sessions": ended});
        let event = AuditEvent {
            action: "session.all_ended",
            tenant: None,
            subject: Uuid::nil(),
        };
        tx.note_change(done(&after));
        let head = self.record(&mut tx, call, event).await?;
        tx.commit().await?;
        self.changes.publish(head, []);
        Ok(ended)
    }

    async fn reset_second_factor(
        &self,
        mut tx: Transaction,
        call: &Call,
        user: UserId,
    ) -> Result<(), Error> {
        if !tx.delete_second_factor(user).await? {
            return Err(Refusal::NotFound.into());
        }
        tx.note_second_factor_reset(user, call.now).await?;
        tx.revoke_sessions(user, None, call.now).await?;
        let event = UserEvent::new("totp.reset", user);
        self.commit_for_user(tx, call, event).await
    }
}

/// The member and its user, if the actor may control how the member signs in.
async fn controlled(
    tx: &mut Transaction,
    call: &Call,
    org: OrgId,
    id: UserId,
) -> Result<(Membership, Versioned<User>), Error> {
    let tenant = Tenant::org(org);
    call.actor.require(Access::CONTROL, tenant)?;
    let member = tx.member(org, id).await?.ok_or(Refusal::NotFound)?;
    let user = tx.user(id).await?.ok_or(Refusal::NotFound)?;
    let rights = tx.rights(id).await?;
    let membership = member.value.membership;
    membership.control_sign_in(&call.actor, &user.value, &rights)?;
    Ok((membership, user))
}

async fn find(tx: &mut Transaction, hash: &str, visit: &Visit) -> Result<PasswordReset, Error> {
    let found = tx.password_reset(hash).await?;
    let reset = found.ok_or(Error::Unauthenticated)?;
    reset.check(visit.now).map_err(|_| Error::Unauthenticated)?;
    Ok(reset)
}

async fn named(tx: &mut Transaction, email: &str) -> Result<Versioned<User>, Error> {
    let email = Email::parse("email", email)?;
    Ok(tx.user_by_email(&email).await?.ok_or(Refusal::NotFound)?)
}
