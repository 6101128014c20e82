//! Admission of a user that an identity provider confirmed: just-in-time creation, mapping of
//! groups to roles, linking of identities.

use crate::account::session::{NewSession, own_session};
use crate::app::App;
use crate::app::audit_event::AuditEvent;
use crate::audit::value::{Audited, changed, created, deleted, done};
use crate::call::Call;
use crate::call::visit::Visit;
use crate::error::Error;
use crate::sso::arrival::{Arrival, SsoBrowser};
use crate::sso::failure::SsoFailure;
use crate::sso::sign_in::SsoOutcome;
use control_domain::{
    Access, Actor, Email, LinkedIdentity, Membership, Name, Refusal, Role, SessionOrigin,
    SignInMethod, SsoConnection, SsoPurpose, SsoRefusal, SsoSettings, Tenant, User, mapped_role,
    new_user_email,
};
use control_sso::AssertedUser;
use control_store::{Page, SsoSignIn, StoreError, Transaction};
use control_wire::{IdentityId, OrgId, UserId};
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

/// Maximum number of attempts, if concurrent admissions change the same rows.
const MAX_ADMISSIONS: usize = 3;

impl App {
    /// Completes a confirmed sign-in by its purpose: session, linked identity, renewed proof or
    /// trial.
    ///
    /// A new user may sign in from two browsers at once. The later admission then conflicts with
    /// rows of the earlier one; its repetition finds the user.
    pub(crate) async fn admit_sso_user(
        &self,
        visit: &Visit,
        browser: SsoBrowser<'_>,
        arrival: &Arrival,
    ) -> Result<SsoOutcome, SsoFailure> {
        for _ in 1..MAX_ADMISSIONS {
            match self.admit_once(visit, browser, arrival).await {
                Err(failure) if failure.is_conflict() => {}
                done => return done,
            }
        }
        self.admit_once(visit, browser, arrival).await
    }

    async fn admit_once(
        &self,
        visit: &Visit,
        browser: SsoBrowser<'_>,
        arrival: &Arrival,
    ) -> Result<SsoOutcome, SsoFailure> {
        let mut tx = self.store.begin().await?;
        let connection = tx.sso_connection(arrival.org).await?;
        let connection = connection.ok_or(SsoRefusal::NoAttempt)?.value;
        let AssertedUser {
            issuer, subject, ..
        } = &arrival.asserted;
        let identity = tx.identity(arrival.org, issuer, subject).await?;
        let own = match browser.actor {
            Some(actor @ Actor::User { id, .. }) => Some((actor, *id)),
            _ => None,
        };
        match (arrival.purpose, own) {
            (SsoPurpose::SignIn, own) => {
                let user = identity.as_ref().map(|identity| identity.user);
                // A response that the browser did not ask for may sign in an attacker's account, in
                // which the user would then store secrets.
                if arrival.is_unsolicited && own.is_some_and(|(_, own)| user != Some(own)) {
                    return Err(SsoRefusal::OtherSession.into());
                }
                let mapped = self.mapped_user(tx, visit, &connection, arrival, identity);
                let (tx, user) = mapped.await?;
                self.start_sso_session(tx, visit, &connection, arrival, &user)
                    .await
            }
            (SsoPurpose::Link(user), Some((_, own))) if own == user => {
                self.link_identity(tx, visit, arrival, user, identity).await
            }
            (SsoPurpose::Proof(user), Some((actor, own))) if own == user => {
                if identity.as_ref().map(|identity| identity.user) != Some(user) {
                    return Err(SsoRefusal::OtherUser.into());
                }
                arrival.check_proof()?;
                let mapped = self.mapped_user(tx, visit, &connection, arrival, identity);
                let (tx, _) = mapped.await?;
                let call = visit.call(actor.clone());
                self.renew_sso_proof(tx, &call, arrival).await
            }
            (SsoPurpose::Trial(user), Some((actor, own))) if own == user => {
                actor.require(Access::ADMINISTER, Tenant::org(arrival.org))?;
                let call = visit.call(actor.clone());
                self.try_sso_user(tx, &call, &connection, arrival, identity)
                    .await
            }
            (SsoPurpose::Link(_) | SsoPurpose::Proof(_) | SsoPurpose::Trial(_), _) => {
                Err(SsoRefusal::OtherBrowser.into())
            }
        }
    }

    /// Finds or creates the user, maps its groups to a role, and records the sign-in.
    async fn mapped_user(
        &self,
        mut tx: Transaction,
        visit: &Visit,
        connection: &SsoConnection,
        arrival: &Arrival,
        identity: Option<LinkedIdentity>,
    ) -> Result<(Transaction, User), SsoFailure> {
        let role = match mapped_role(&connection.settings, &arrival.asserted) {
            Ok(role) => role,
            Err(refusal) => {
                if let (SsoRefusal::NoRole, Some(identity)) = (refusal, &identity) {
                    self.end_mapped_membership(tx, visit, identity).await?;
                }
                return Err(refusal.into());
            }
        };
        let call = visit.call(Actor::System);
        let user = match &identity {
            Some(identity) => {
                tx.see_identity(identity.id, visit.now).await?;
                let user = tx.user(identity.user).await?;
                user.ok_or(Error::Unauthenticated)?.value
            }
            None => self.create_sso_user(&mut tx, &call, arrival).await?,
        };
        self.map_membership(&mut tx, &call, arrival.org, user.id, role)
            .await?;
        let sign_in = SsoSignIn {
            at: visit.now,
            refusal: None,
            subject: Some(arrival.asserted.subject.clone()),
            email: Some(user.email.to_string()),
            role: Some(role.name().to_owned()),
            correlation_id: visit.correlation_id.clone(),
            is_trial: false,
        };
        tx.note_sso_sign_in(arrival.org, self.time_id(visit.now), &sign_in)
            .await?;
        Ok((tx, user))
    }

    /// Renews the proof of identity of the request's session, and gives the session a new secret.
    async fn renew_sso_proof(
        &self,
        mut tx: Transaction,
        call: &Call,
        arrival: &Arrival,
    ) -> Result<SsoOutcome, SsoFailure> {
        let (_, session) = own_session(call)?;
        let found = tx.session(session).await?.ok_or(Refusal::Ended)?;
        // Only a session with a proof by this provider can be renewed by it.
        if !found.is_vouched_by(arrival.org) {
            return Err(SsoRefusal::OtherBrowser.into());
        }
        if let Some(end) = arrival.asserted.session_ends_at {
            tx.shorten_session(session, end).await?;
        }
        let method = found.origin.method;
        let secret = self.strengthen(tx, call, found.clone(), method).await?;
        Ok(SsoOutcome {
            session: Some(NewSession {
                session: found,
                secret,
                browser: None,
                second_factor_reset_at: None,
            }),
            return_to: arrival.return_to.clone(),
        })
    }

    async fn start_sso_session(
        &self,
        mut tx: Transaction,
        visit: &Visit,
        connection: &SsoConnection,
        arrival: &Arrival,
        user: &User,
    ) -> Result<SsoOutcome, SsoFailure> {
        let method = match connection.settings {
            SsoSettings::Oidc(_) => SignInMethod::Oidc,
            SsoSettings::Saml(_) => SignInMethod::Saml,
        };
        let origin = SessionOrigin {
            provider: Some(arrival.org),
            ..visit.origin(method)
        };
        let mut started = self.start_session(&mut tx, user.id, visit, origin).await?;
        let authenticated_at = arrival.asserted.authenticated_at;
        started.session = started.session.authenticated(authenticated_at);
        let (id, strong_until) = (started.session.id, started.session.strong_until);
        tx.date_session_proof(id, strong_until).await?;
        if let Some(end) = arrival.asserted.session_ends_at {
            started.session.ends_at = started.session.ends_at.min(end);
            tx.shorten_session(started.session.id, end).await?;
        }
        self.commit_session(tx, visit, user, &started).await?;
        Ok(SsoOutcome {
            session: Some(started),
            return_to: arrival.return_to.clone(),
        })
    }

    /// Trial: makes the decisions of a sign-in, and records only the outcome.
    async fn try_sso_user(
        &self,
        mut tx: Transaction,
        call: &Call,
        connection: &SsoConnection,
        arrival: &Arrival,
        identity: Option<LinkedIdentity>,
    ) -> Result<SsoOutcome, SsoFailure> {
        let (org, asserted) = (arrival.org, &arrival.asserted);
        let role = mapped_role(&connection.settings, asserted)?;
        let email = match identity {
            Some(LinkedIdentity { user, .. }) => {
                let other_admin = tx.has_other_admin(org, user).await?;
                if let Some(found) = tx.member(org, user).await? {
                    let membership = found.value.membership;
                    membership.with_mapped_role(role, other_admin)?;
                } else if tx.is_removed_member(org, user).await? {
                    return Err(SsoRefusal::Removed.into());
                }
                let user = tx.user(user).await?.ok_or(Error::Unauthenticated)?;
                user.value.email
            }
            None => new_email(&mut tx, arrival).await?,
        };
        let sign_in = SsoSignIn {
            at: call.now,
            refusal: None,
            subject: Some(asserted.subject.clone()),
            email: Some(email.to_string()),
            role: Some(role.name().to_owned()),
            correlation_id: call.correlation_id.clone(),
            is_trial: true,
        };
        tx.note_sso_sign_in(org, self.time_id(call.now), &sign_in)
            .await?;
        tx.note_change(done(
            &json!({"subject": asserted.subject, "role": role.name()}),
        ));
        self.commit(tx, call, "sso.tried", Tenant::org(org), org.0)
            .await?;
        Ok(SsoOutcome {
            session: None,
            return_to: arrival.return_to.clone(),
        })
    }

    /// Creates a user for a new identity. An existing address is refused, never taken over.
    async fn create_sso_user(
        &self,
        tx: &mut Transaction,
        call: &Call,
        arrival: &Arrival,
    ) -> Result<User, SsoFailure> {
        let org = arrival.org;
        let email = new_email(tx, arrival).await?;
        let id = UserId::new(call.now, self.random_id());
        let name = shown_name(&arrival.asserted, email.as_str());
        let user = User::provision(id, email, name, call.now);
        tx.insert_user(&user)
            .await
            .map_err(conflict(SsoRefusal::EmailTaken))?;
        let identity = self.new_identity(arrival, user.id, call.now);
        tx.insert_identity(&identity).await?;
        tx.note_change(done(&json!({
            "email": user.email.as_str(), "issuer": identity.issuer, "subject": identity.subject,
        })));
        let event = event("user.provisioned", org, user.id.0);
        self.record(tx, call, event).await?;
        Ok(user)
    }

    /// Sets the role that the user's groups map to, effective at once for sessions and API keys.
    async fn map_membership(
        &self,
        tx: &mut Transaction,
        call: &Call,
        org: OrgId,
        user: UserId,
        role: Role,
    ) -> Result<(), SsoFailure> {
        let other_admin = tx.has_other_admin(org, user).await?;
        let Some(found) = tx.member(org, user).await? else {
            if tx.is_removed_member(org, user).await? {
                return Err(SsoRefusal::Removed.into());
            }
            let membership = Membership {
                org,
                user,
                role,
                created_at: call.now,
            };
            tx.insert_membership(membership).await?;
            tx.note_change(created(&membership));
            let event = event("membership.mapped", org, user.0);
            self.record(tx, call, event).await?;
            return Ok(());
        };
        let membership = found.value.membership;
        if membership.role == role {
            return Ok(());
        }
        let before = membership.audited();
        let membership = membership.with_mapped_role(role, other_admin)?;
        tx.update_membership(membership, found.version).await?;
        self.end_credentials(tx, call, org, user, Some(role))
            .await?;
        tx.note_change(changed(&before, &membership));
        let event = event("membership.mapped", org, user.0);
        self.record(tx, call, event).await?;
        Ok(())
    }

    /// Handles a user without a mapped role: ends the sessions from the provider, and the
    /// membership unless the organization would lose its last administrator.
    async fn end_mapped_membership(
        &self,
        mut tx: Transaction,
        visit: &Visit,
        identity: &LinkedIdentity,
    ) -> Result<(), SsoFailure> {
        let (org, user) = (identity.org, identity.user);
        let call = visit.call(Actor::System);
        tx.revoke_user_provider_sessions(org, user, visit.now)
            .await?;
        let other_admin = tx.has_other_admin(org, user).await?;
        let found = tx.member(org, user).await?;
        let found = found.filter(|found| found.value.membership.may_end(other_admin).is_ok());
        if let Some(found) = found {
            tx.delete_membership(org, user, found.version).await?;
            self.end_credentials(&mut tx, &call, org, user, None)
                .await?;
            tx.note_change(deleted(&found.value.membership));
        }
        let tenant = Tenant::org(org);
        self.commit(tx, &call, "membership.mapped", tenant, user.0)
            .await?;
        Ok(())
    }

    async fn link_identity(
        &self,
        mut tx: Transaction,
        visit: &Visit,
        arrival: &Arrival,
        user: UserId,
        identity: Option<LinkedIdentity>,
    ) -> Result<SsoOutcome, SsoFailure> {
        let outcome = SsoOutcome {
            session: None,
            return_to: arrival.return_to.clone(),
        };
        match identity {
            Some(identity) if identity.user == user => return Ok(outcome),
            Some(_) => return Err(SsoRefusal::IdentityTaken.into()),
            None => {}
        }
        let identity = self.new_identity(arrival, user, visit.now);
        tx.insert_identity(&identity)
            .await
            .map_err(conflict(SsoRefusal::IdentityTaken))?;
        tx.note_change(created(&identity));
        let (call, tenant) = (visit.call(Actor::System), Tenant::org(arrival.org));
        self.commit(tx, &call, "identity.linked", tenant, user.0)
            .await?;
        Ok(outcome)
    }

    fn new_identity(&self, arrival: &Arrival, user: UserId, now: Timestamp) -> LinkedIdentity {
        LinkedIdentity {
            id: IdentityId::new(now, self.random_id()),
            org: arrival.org,
            issuer: arrival.asserted.issuer.clone(),
            subject: arrival.asserted.subject.clone(),
            user,
            created_at: now,
            seen_at: now,
        }
    }

    /// A random identifier that sorts by time.
    pub(crate) fn time_id(&self, now: Timestamp) -> Uuid {
        IdentityId::new(now, self.random_id()).0
    }

    /// Identities linked to the signed-in user.
    pub async fn identities(&self, call: &Call, page: Page) -> Result<Vec<LinkedIdentity>, Error> {
        call.actor.require_account_owner()?;
        let user = own_user(call)?;
        let mut tx = self.store.read().await?;
        Ok(tx.identities_of_user(user, page).await?)
    }

    /// Unlinks an identity of the user, and ends the sessions from its provider. The last way to
    /// sign in cannot be removed.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::Invalid`] if the user has neither a password nor another identity.
    pub async fn unlink_identity(&self, call: &Call, id: IdentityId) -> Result<(), Error> {
        call.actor.holds(Access::FreshSession)?;
        let user = own_user(call)?;
        let mut tx = self.store.begin().await?;
        let found = tx.identity_of_user(user, id).await?;
        let found = found.ok_or(Refusal::NotFound)?;
        let first_two = tx.identities_of_user(user, Page::newest(None, 2)).await?;
        let has_password = tx
            .user(user)
            .await?
            .is_some_and(|user| user.value.password.is_some());
        if !has_password && first_two.len() == 1 {
            let reason = "is the only way to sign in: set a password first";
            return Err(Refusal::invalid("identity", reason).into());
        }
        tx.delete_identity(&found, call.now).await?;
        tx.note_change(deleted(&found));
        let tenant = Tenant::org(found.org);
        self.commit(tx, call, "identity.unlinked", tenant, user.0)
            .await
    }
}

/// The address of a new user: it must be in a domain of the organization, and of no other user.
async fn new_email(tx: &mut Transaction, arrival: &Arrival) -> Result<Email, SsoFailure> {
    let domains = if tx.is_only_org(arrival.org).await? {
        None
    } else {
        Some(tx.org_domains(arrival.org).await?)
    };
    let email = new_user_email(&arrival.asserted, domains.as_deref())?;
    if tx.user_by_email(&email).await?.is_some() {
        return Err(SsoRefusal::EmailTaken.into());
    }
    Ok(email)
}

fn own_user(call: &Call) -> Result<UserId, Error> {
    if let Actor::User { id, .. } = &call.actor {
        return Ok(*id);
    }
    Err(Refusal::WrongCredential.into())
}

/// Maps a unique-key conflict to a refusal.
fn conflict(refusal: SsoRefusal) -> impl Fn(StoreError) -> SsoFailure {
    move |error| {
        if matches!(error, StoreError::Conflict) {
            return refusal.into();
        }
        error.into()
    }
}

fn event(action: &'static str, org: OrgId, subject: Uuid) -> AuditEvent<'static> {
    AuditEvent {
        action,
        tenant: Some(Tenant::org(org)),
        subject,
    }
}

/// The name asserted by the provider, or else the local part of the address.
fn shown_name(asserted: &AssertedUser, email: &str) -> Name {
    let (local, _) = email.split_once('@').unwrap_or((email, ""));
    let candidates = [asserted.name.as_deref().unwrap_or_default(), local];
    let mut names = candidates
        .iter()
        .filter_map(|text| Name::parse("name", text).ok());
    let short = || Name::stored(local.chars().take(100).collect());
    names.next().unwrap_or_else(short)
}
