//! The second factor: the secret of an authenticator app, and recovery codes.

use crate::account::session::own_session;
use crate::account::user::own_user;
use crate::account::user_event::UserEvent;
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_auth::{RecoveryCode, Secret, TotpSecret};
use control_domain::{Access, Refusal};
use control_store::{StoredTotp, Transaction};
use control_wire::UserId;
use jiff::Timestamp;
use serde_json::json;

/// The issuer shown by authenticator apps next to the address.
const ISSUER: &str = "Control plane";
const RECOVERY_CODES: usize = 10;

/// State of a user's second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondFactor {
    /// Time when the first code confirmed the authenticator app.
    pub confirmed_at: Timestamp,
    /// Number of unused recovery codes.
    pub recovery_codes_left: i64,
}

/// An unconfirmed secret, in the format of authenticator apps.
#[derive(Debug)]
pub struct TotpSetup {
    /// The secret in Base32, for apps without a camera.
    pub base32: String,
    /// The content of the QR code, `otpauth://totp/…`.
    pub uri: String,
    /// The QR code as an SVG element.
    pub qr_svg: String,
}

/// Result of activating a second factor.
#[derive(Debug)]
pub struct NewSecondFactor {
    /// Each valid once; shown once.
    pub recovery_codes: Vec<RecoveryCode>,
    /// The new secret of the session, which now has a second factor.
    pub session: Secret,
}

impl App {
    /// State of the user's second factor; `None` without a confirmed one.
    pub async fn second_factor(&self, call: &Call) -> Result<Option<SecondFactor>, Error> {
        let (user, _) = own_session(call)?;
        let mut tx = self.store.read().await?;
        let totp = tx.totp(user).await?;
        let Some(confirmed_at) = totp.and_then(|totp| totp.confirmed_at) else {
            return Ok(None);
        };
        Ok(Some(SecondFactor {
            confirmed_at,
            recovery_codes_left: tx.recovery_codes_left(user).await?,
        }))
    }

    /// Time when an administrator removed the user's second factor; `None` once there is a new one.
    pub async fn second_factor_reset_at(&self, call: &Call) -> Result<Option<Timestamp>, Error> {
        let (user, _) = own_session(call)?;
        Ok(self
            .store
            .read()
            .await?
            .second_factor_reset_at(user)
            .await?)
    }

    /// Generates a secret for an authenticator app; it becomes active when a code confirms it.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::WrongState`] if the user has a second factor.
    pub async fn start_totp(&self, call: &Call) -> Result<TotpSetup, Error> {
        call.actor.holds(Access::FreshSession)?;
        let mut tx = self.store.begin().await?;
        let user = own_user(&mut tx, call).await?.value;
        let secret = TotpSecret::new(self.environment.random());
        let nonce = self.environment.random();
        let sealed = self
            .sealer
            .seal(&totp_place(user.id), nonce, secret.bytes())?;
        let started = tx.start_totp(user.id, &sealed, call.now).await;
        started.map_err(|_| wrong_state("set up", "be set up"))?;
        let account = user.email.as_str();
        let setup = TotpSetup {
            base32: secret.base32(),
            uri: secret.uri(ISSUER, account),
            qr_svg: secret.qr_svg(ISSUER, account)?,
        };
        let event = UserEvent::new("totp.started", user.id);
        self.commit_for_user(tx, call, event).await?;
        Ok(setup)
    }

    /// Activates the secret of [`App::start_totp`] by a code of the app. Other sessions of the user
    /// end, because they began without the second factor.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::Invalid`] for a wrong code.
    pub async fn confirm_totp(&self, call: &Call, code: &str) -> Result<NewSecondFactor, Error> {
        call.actor.holds(Access::FreshSession)?;
        let (user, session) = own_session(call)?;
        let mut tx = self.store.begin().await?;
        let stored = tx.totp(user).await?;
        let waiting = stored.filter(|totp| totp.confirmed_at.is_none());
        let stored = waiting.ok_or_else(|| wrong_state("not started", "be confirmed"))?;
        let secret = self.open_totp(user, &stored)?;
        let step = secret.check(code, stored.last_step, call.now);
        let step = step.ok_or(Refusal::invalid("code", "is not the code of this moment"))?;
        tx.confirm_totp(user, &stored.sealed, step, call.now)
            .await?;
        let recovery_codes = self.replace_codes(&mut tx, user).await?;
        let ended = tx.revoke_sessions(user, Some(session), call.now).await?;
        let after = json!({"other_sessions_ended": ended});
        let confirmed = UserEvent::new("totp.enabled", user).with(&after);
        self.record_for_user(&mut tx, call, confirmed).await?;
        let found = tx.session(session).await?.ok_or(Refusal::Ended)?;
        let method = found.origin.method.with_totp();
        let session = self.strengthen(tx, call, found, method).await?;
        Ok(NewSecondFactor {
            recovery_codes,
            session,
        })
    }

    /// Removes the user's own second factor.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::WrongState`] if there is none, or an organization demands it.
    pub async fn remove_totp(&self, call: &Call) -> Result<(), Error> {
        call.actor.holds(Access::FreshSession)?;
        let (user, _) = own_session(call)?;
        let mut tx = self.store.begin().await?;
        if !tx.rights(user).await?.guarded.is_empty() {
            return Err(wrong_state("demanded by an organization", "be removed"));
        }
        if !tx.delete_second_factor(user).await? {
            return Err(wrong_state("not set up", "be removed"));
        }
        let removed = UserEvent::new("totp.disabled", user);
        self.commit_for_user(tx, call, removed).await
    }

    /// Replaces the recovery codes by ten new ones.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::WrongState`] without a second factor.
    pub async fn renew_recovery_codes(&self, call: &Call) -> Result<Vec<RecoveryCode>, Error> {
        call.actor.holds(Access::FreshSession)?;
        let (user, _) = own_session(call)?;
        let mut tx = self.store.begin().await?;
        let totp = tx.totp(user).await?;
        if totp.is_none_or(|totp| totp.confirmed_at.is_none()) {
            return Err(wrong_state("not set up", "have recovery codes"));
        }
        let codes = self.replace_codes(&mut tx, user).await?;
        let renewed = UserEvent::new("recovery_codes.renewed", user);
        self.commit_for_user(tx, call, renewed).await?;
        Ok(codes)
    }

    /// Consumes a code; returns true if it is correct and no replica has accepted it before.
    pub(crate) async fn use_code(
        &self,
        tx: &mut Transaction,
        user: UserId,
        code: &str,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let stored = tx.totp(user).await?;
        let Some(stored) = stored.filter(|totp| totp.confirmed_at.is_some()) else {
            return Ok(false);
        };
        let secret = self.open_totp(user, &stored)?;
        match secret.check(code, stored.last_step, now) {
            Some(step) => Ok(tx.use_totp_step(user, step).await?),
            None => Ok(false),
        }
    }

    fn open_totp(&self, user: UserId, stored: &StoredTotp) -> Result<TotpSecret, Error> {
        let bytes = self.sealer.open(&totp_place(user), &stored.sealed)?;
        Ok(TotpSecret::from_bytes(&bytes)?)
    }

    async fn replace_codes(
        &self,
        tx: &mut Transaction,
        user: UserId,
    ) -> Result<Vec<RecoveryCode>, Error> {
        let codes = (0..RECOVERY_CODES).map(|_| RecoveryCode::new(self.environment.random()));
        let codes: Vec<RecoveryCode> = codes.collect();
        let hashes: Vec<String> = codes.iter().map(RecoveryCode::hash).collect();
        tx.replace_recovery_codes(user, &hashes).await?;
        Ok(codes)
    }
}

/// Context that a user's TOTP secret is sealed with.
pub(crate) fn totp_place(user: UserId) -> String {
    format!("totp/{user}")
}

fn wrong_state(state: &'static str, event: &'static str) -> Error {
    let noun = "a second factor";
    Refusal::WrongState { noun, state, event }.into()
}
