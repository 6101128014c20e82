//! Sessions of users.

use crate::account::user_event::UserEvent;
use crate::app::App;
use crate::call::Call;
use crate::call::visit::Visit;
use crate::error::Error;
use control_auth::Secret;
use control_domain::{Access, Actor, Refusal, Session, SessionOrigin};
use control_store::{Page, SessionFilter, Transaction};
use control_wire::{SessionId, UserId};
use jiff::Timestamp;
use serde_json::{Value, json};

/// A new session, with the secrets for the browser's cookies.
#[derive(Debug)]
pub struct NewSession {
    /// The session as stored.
    pub session: Session,
    /// Secret of the session, shown once: its value in the cookie.
    pub secret: Secret,
    /// New secret that identifies the browser; `None` if the browser was known.
    pub browser: Option<Secret>,
    /// Time when an administrator removed the user's second factor; `None` once there is a new one.
    pub second_factor_reset_at: Option<Timestamp>,
}

impl NewSession {
    /// A sentence for the first page of the session; `None` if there is nothing to report.
    pub fn notice(&self) -> Option<String> {
        let at = self.second_factor_reset_at?;
        Some(format!(
            "An administrator removed your second factor on {}. Set up another one at your profile.",
            at.strftime("%Y-%m-%d at %H:%M UTC")
        ))
    }
}

/// A session for display to its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// The session as stored.
    pub session: Session,
    /// True for the session of the request that lists them.
    pub is_own: bool,
}

impl App {
    /// Starts a session, with the secret for its cookie. The caller writes the entry of the audit log.
    pub(crate) async fn start_session(
        &self,
        tx: &mut Transaction,
        user: UserId,
        visit: &Visit,
        origin: SessionOrigin,
    ) -> Result<NewSession, Error> {
        let now = visit.now;
        let secret = self.new_secret();
        let session = Session::start(SessionId::new(now, self.random_id()), user, origin, now);
        tx.insert_session(&session, &secret.hash()).await?;
        let known = match &visit.known_browser {
            Some(browser) => tx.known_browser(&browser.hash()).await?,
            None => None,
        };
        let is_known = known.is_some_and(|known| known.is_of(user, now));
        let browser = match &visit.known_browser {
            Some(browser) if is_known => browser.clone(),
            _ => self.new_secret(),
        };
        tx.note_browser(&browser.hash(), user, now).await?;
        Ok(NewSession {
            session,
            secret,
            browser: (!is_known).then_some(browser),
            second_factor_reset_at: tx.second_factor_reset_at(user).await?,
        })
    }

    /// The actor of the session with this secret, with the user's current roles.
    pub(crate) async fn session_actor(&self, hash: &str, now: Timestamp) -> Result<Actor, Error> {
        let (session, actor) = self.accept_session(hash, now).await?;
        if session.is_seen_late(now) {
            let mut tx = self.store.begin().await?;
            tx.see_session(session.id, now).await?;
            tx.commit().await?;
        }
        Ok(actor)
    }

    /// Like `session_actor`, but does not extend the session: for requests that only keep a page
    /// live.
    pub(crate) async fn live_actor(&self, hash: &str, now: Timestamp) -> Result<Actor, Error> {
        Ok(self.accept_session(hash, now).await?.1)
    }

    /// The actor of an open session, for a live page that was authenticated earlier.
    ///
    /// # Errors
    ///
    /// [`Error::Unauthenticated`] if the session has ended.
    pub async fn actor_of_live_page(&self, session: SessionId) -> Result<Actor, Error> {
        let mut tx = self.store.read().await?;
        let found = tx.session(session).await?;
        let (_, actor) = accepted(&mut tx, found, self.now()).await?;
        Ok(actor)
    }

    async fn accept_session(&self, hash: &str, now: Timestamp) -> Result<(Session, Actor), Error> {
        let mut tx = self.store.read().await?;
        let found = tx.session_by_secret(hash).await?;
        accepted(&mut tx, found, now).await
    }

    /// Ends the session of the request.
    pub async fn sign_out(&self, call: &Call) -> Result<(), Error> {
        let (user, session) = own_session(call)?;
        self.end_session(call, user, session).await
    }

    /// The open sessions of the user. A session without all rights of the user sees only sessions
    /// from its own identity provider.
    pub async fn sessions(&self, call: &Call, page: Page) -> Result<Vec<SessionInfo>, Error> {
        let (user, own) = own_session(call)?;
        let mut tx = self.store.read().await?;
        let filter = visible(&mut tx, call).await?;
        let found = tx.sessions_of_user(user, filter, page, call.now).await?;
        let info = found.into_iter().map(|session| SessionInfo {
            is_own: session.id == own,
            session,
        });
        Ok(info.collect())
    }

    /// The session of the request.
    pub async fn current_session(&self, call: &Call) -> Result<Session, Error> {
        let (_, own) = own_session(call)?;
        let found = self.store.read().await?.session(own).await?;
        Ok(found.ok_or(Refusal::Ended)?)
    }

    /// Ends one session of the user, possibly the one of this request.
    pub async fn revoke_session(&self, call: &Call, session: SessionId) -> Result<(), Error> {
        let (user, _) = own_session(call)?;
        self.end_session(call, user, session).await
    }

    /// Ends all other sessions of the user; returns their number.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::NotFresh`] for a session without all rights of the user.
    pub async fn revoke_other_sessions(&self, call: &Call) -> Result<u64, Error> {
        call.actor.require_account_owner()?;
        let (user, own) = own_session(call)?;
        let mut tx = self.store.begin().await?;
        let ended = tx.revoke_sessions(user, Some(own), call.now).await?;
        let after = json!({"sessions": ended});
        let event = UserEvent::new("session.others_ended", user).with(&after);
        self.commit_for_user(tx, call, event).await?;
        Ok(ended)
    }

    async fn end_session(
        &self,
        call: &Call,
        user: UserId,
        session: SessionId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let filter = visible(&mut tx, call).await?;
        let is_visible = |found: &Session| match filter {
            SessionFilter::Every => true,
            SessionFilter::VouchedBy(org) => found.is_vouched_by(org),
        };
        let found = tx.session(session).await?;
        let own = found
            .filter(|found| found.user == user && found.is_open(call.now) && is_visible(found));
        let found = own.ok_or(Refusal::NotFound)?;
        tx.revoke_session(session, call.now).await?;
        let event = UserEvent {
            action: "session.ended",
            user,
            subject: session.0,
            before: Some(&audited(&found)),
            after: None,
        };
        self.commit_for_user(tx, call, event).await
    }
}

/// The session with its actor; [`Error::Unauthenticated`] unless it is open at `now`.
async fn accepted(
    tx: &mut Transaction,
    found: Option<Session>,
    now: Timestamp,
) -> Result<(Session, Actor), Error> {
    let session = found.ok_or(Error::Unauthenticated)?;
    let user = tx.user(session.user).await?;
    let user = user.ok_or(Error::Unauthenticated)?.value;
    let rights = tx.rights(user.id).await?;
    let actor = session.accept(&user, rights, now);
    let actor = actor.map_err(|_| Error::Unauthenticated)?;
    Ok((session, actor))
}

/// The sessions of the user that the actor may see and end.
async fn visible(tx: &mut Transaction, call: &Call) -> Result<SessionFilter, Error> {
    let (_, own) = own_session(call)?;
    if call.actor.require_account_owner().is_ok() {
        return Ok(SessionFilter::Every);
    }
    let own = tx.session(own).await?.ok_or(Refusal::Ended)?;
    // Only a provider's word limits the rights of a session.
    let provider = own.origin.provider.ok_or(Refusal::Ended)?;
    Ok(SessionFilter::VouchedBy(provider))
}

/// The user and the session that authenticated the request.
pub(crate) fn own_session(call: &Call) -> Result<(UserId, SessionId), Error> {
    call.actor.holds(Access::Session)?;
    let Actor::User { id, session, .. } = call.actor else {
        return Err(Refusal::WrongCredential.into());
    };
    Ok((id, session))
}

/// The fields of a session in the audit log.
pub(crate) fn audited(session: &Session) -> Value {
    let SessionOrigin {
        method,
        provider,
        address: _,
        browser,
    } = &session.origin;
    json!({"method": method.name(), "provider": provider, "browser": browser})
}
