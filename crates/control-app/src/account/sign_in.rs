//! Sign-in by a password, and by a second factor if the user has one.
//!
//! Unknown users, and users without a password, cost the same work and get the same response. Wrong
//! attempts are counted per account for browsers that never signed in, and per browser for known
//! ones: a flood of wrong passwords from many addresses does not lock the owner out.

use crate::account::refused_sign_in::TOO_MANY_ATTEMPTS;
use crate::account::session::{NewSession, audited, own_session};
use crate::account::user_event::UserEvent;
use crate::app::App;
use crate::app::permits::PasswordOwner;
use crate::call::Call;
use crate::call::visit::Visit;
use crate::error::Error;
use crate::metric;
use control_auth::{Password, PasswordHash, RecoveryCode, Secret, sha256};
use control_domain::{Email, PendingSignIn, Refusal, Session, SignInMethod, User};
use control_store::{Rate, Transaction};
use control_wire::UserId;
use jiff::Timestamp;
use metrics::counter;
use serde_json::json;
use std::sync::Arc;
use uuid::Uuid;

/// Rate of wrong passwords and codes: a burst of ten, then one per minute.
const ATTEMPT_RATE: Rate = Rate {
    per_minute: 1,
    burst: 10,
};

/// Result of a correct password.
#[derive(Debug)]
pub enum SignedIn {
    /// The user has no second factor: the sign-in is complete.
    Session(Box<NewSession>),
    /// The user has a second factor: the next step must present a code.
    NeedsCode {
        /// Identifies this sign-in in the next step. It is not a session.
        secret: Secret,
        /// Deadline for the code.
        ends_at: Timestamp,
    },
}

/// Fresh proof of identity of a signed-in user.
#[derive(Debug)]
pub enum StrongProof {
    /// Password of the user, compared with the stored hash.
    Password(Password),
    /// A code of the authenticator app.
    Code(String),
}

/// The second factor of a sign-in.
#[derive(Debug)]
enum Factor<'a> {
    Code(&'a str),
    Recovery(RecoveryCode),
}

/// Rate bucket that an attempt was charged to.
#[derive(Debug)]
struct CountedAttempt {
    bucket: String,
    owner: PasswordOwner,
}

impl App {
    /// Signs in by address and password: the result is a session, or a request for the second
    /// factor.
    ///
    /// # Errors
    ///
    /// [`Error::WrongSignIn`]; [`Error::TooManyAttempts`] or [`Error::TooManySignIns`] before the
    /// password is compared.
    pub async fn sign_in(
        self: &Arc<Self>,
        visit: &Visit,
        email: &str,
        password: Password,
    ) -> Result<SignedIn, Error> {
        let found = match Email::parse("email", email) {
            Ok(email) => self.store.read().await?.user_by_email(&email).await?,
            Err(_) => None,
        };
        let user = found.map(|found| found.value);
        let attempt = self.count_attempt(visit, email, user.as_ref()).await?;
        let stored = user.as_ref().and_then(|user| user.password.clone());
        let hash = stored.clone().unwrap_or_else(PasswordHash::unknown);
        let is_right = self.compare(attempt.owner, password, hash).await?;
        let (Some(user), Some(stored), true) = (user.clone(), stored, is_right) else {
            self.note_refusal(visit, email, user.as_ref(), "password");
            return Err(Error::WrongSignIn);
        };
        let mut tx = self.store.begin().await?;
        if !tx.lock_password(user.id, &stored).await? {
            return Err(Error::WrongSignIn);
        }
        let totp = tx.totp(user.id).await?;
        // Counts as a wrong attempt until the code has completed the sign-in.
        if totp.is_some_and(|totp| totp.confirmed_at.is_some()) {
            return self.wait_for_code(tx, visit, user.id).await;
        }
        tx.return_tokens(&attempt.bucket, ATTEMPT_RATE, 1).await?;
        let session = self
            .finish(tx, visit, &user, SignInMethod::Password)
            .await?;
        Ok(SignedIn::Session(Box::new(session)))
    }

    /// Completes a sign-in by a code of the authenticator app.
    ///
    /// # Errors
    ///
    /// [`Error::WrongSignIn`] for a wrong code; [`Error::Unauthenticated`] if the sign-in has to
    /// restart.
    pub async fn sign_in_code(
        self: &Arc<Self>,
        visit: &Visit,
        pending: &Secret,
        code: &str,
    ) -> Result<NewSession, Error> {
        self.complete(visit, pending, Factor::Code(code)).await
    }

    /// Completes a sign-in by a recovery code, which is then used up.
    ///
    /// # Errors
    ///
    /// [`Error::WrongSignIn`] for a wrong code; [`Error::Unauthenticated`] if the sign-in has to
    /// restart.
    pub async fn sign_in_recovery(
        self: &Arc<Self>,
        visit: &Visit,
        pending: &Secret,
        code: &str,
    ) -> Result<NewSession, Error> {
        let factor = Factor::Recovery(RecoveryCode::presented(code));
        self.complete(visit, pending, factor).await
    }

    /// Renews a signed-in user's proof of identity, which stays fresh for ten minutes; returns the
    /// session's new secret. A user with a second factor must present a code: the password alone is
    /// refused.
    ///
    /// # Errors
    ///
    /// [`Error::WrongSignIn`] for a wrong proof; [`Refusal::Invalid`] for a password where a code is needed.
    pub async fn prove_again(&self, call: &Call, proof: StrongProof) -> Result<Secret, Error> {
        let (user, session) = own_session(call)?;
        let mut tx = self.store.read().await?;
        let found = tx.session(session).await?.ok_or(Refusal::Ended)?;
        // An identity provider can start any number of sessions, so they share one bucket.
        let bucket = match found.origin.provider {
            Some(org) => format!("sign-in provider {org} {user}"),
            None => format!("sign-in session {session}"),
        };
        self.charge_attempt(&bucket, call.now).await?;
        let before = found.origin.method;
        let method = match proof {
            StrongProof::Password(password) => {
                let totp = tx.totp(user).await?;
                if totp.is_some_and(|totp| totp.confirmed_at.is_some()) {
                    let reason = "is required: the user has a second factor";
                    return Err(Refusal::invalid("code", reason).into());
                }
                let found = tx.user(user).await?.ok_or(Refusal::NotFound)?;
                drop(tx);
                let hash = found.value.password.ok_or(Refusal::NoPassword)?;
                let owner = PasswordOwner::Known;
                let is_right = self.compare(owner, password, hash).await?;
                is_right.then(|| before.with_password())
            }
            StrongProof::Code(code) => {
                drop(tx);
                let mut tx = self.store.begin().await?;
                let is_right = self.use_code(&mut tx, user, &code, call.now).await?;
                tx.commit().await?;
                is_right.then(|| before.with_totp())
            }
        };
        let method = method.ok_or(Error::WrongSignIn)?;
        let mut tx = self.store.begin().await?;
        tx.return_tokens(&bucket, ATTEMPT_RATE, 1).await?;
        self.strengthen(tx, call, found, method).await
    }

    /// Stores the renewed proof of identity and gives the session a new secret.
    pub(crate) async fn strengthen(
        &self,
        mut tx: Transaction,
        call: &Call,
        session: Session,
        method: SignInMethod,
    ) -> Result<Secret, Error> {
        let before = audited(&session);
        let session = session.strengthen(method, call.now);
        let secret = self.new_secret();
        tx.strengthen_session(&session, &secret.hash()).await?;
        let event = UserEvent {
            action: "session.strengthened",
            user: session.user,
            subject: session.id.0,
            before: Some(&before),
            after: Some(&audited(&session)),
        };
        self.commit_for_user(tx, call, event).await?;
        Ok(secret)
    }

    /// Returns true if the password matches the hash; waits for a permit.
    pub(crate) async fn compare(
        &self,
        owner: PasswordOwner,
        password: Password,
        hash: PasswordHash,
    ) -> Result<bool, Error> {
        let mut permit = self.passwords.acquire(owner).await?;
        let compared =
            tokio::task::spawn_blocking(move || hash.verify_in(permit.memory(), &password).is_ok());
        compared.await.map_err(|_| Error::Stopped)
    }

    async fn wait_for_code(
        &self,
        mut tx: Transaction,
        visit: &Visit,
        user: UserId,
    ) -> Result<SignedIn, Error> {
        let id = Uuid::from_bytes(self.environment.random());
        let origin = visit.origin(SignInMethod::Password);
        let pending = PendingSignIn::start(id, user, origin, visit.now);
        let secret = self.new_secret();
        tx.insert_pending_sign_in(&pending, &secret.hash()).await?;
        tx.commit().await?;
        Ok(SignedIn::NeedsCode {
            secret,
            ends_at: pending.ends_at,
        })
    }

    async fn complete(
        self: &Arc<Self>,
        visit: &Visit,
        pending: &Secret,
        factor: Factor<'_>,
    ) -> Result<NewSession, Error> {
        let mut tx = self.store.read().await?;
        let found = tx.pending_sign_in(&pending.hash()).await?;
        let pending = found.ok_or(Error::Unauthenticated)?;
        let checked = pending.check(visit.now);
        checked.map_err(|_| Error::Unauthenticated)?;
        let user = tx.user(pending.user).await?;
        let user = user.ok_or(Error::Unauthenticated)?.value;
        drop(tx);
        let attempt = self
            .count_attempt(visit, user.email.as_str(), Some(&user))
            .await?;
        let mut tx = self.store.begin().await?;
        let (is_right, method) = match &factor {
            Factor::Code(code) => {
                let is_right = self.use_code(&mut tx, user.id, code, visit.now).await?;
                (is_right, SignInMethod::PasswordTotp)
            }
            Factor::Recovery(code) => {
                let is_right = tx
                    .use_recovery_code(user.id, &code.hash(), visit.now)
                    .await?;
                (is_right, SignInMethod::PasswordRecovery)
            }
        };
        if !is_right {
            drop(tx);
            let email = user.email.as_str();
            self.note_refusal(visit, email, Some(&user), "second factor");
            return Err(Error::WrongSignIn);
        }
        // Of two concurrent requests for one sign-in, one fails.
        let spent = tx.spend_pending_sign_in(pending.id).await;
        spent.map_err(|_| Error::Unauthenticated)?;
        // Refunds the tokens of the password and of the code.
        tx.return_tokens(&attempt.bucket, ATTEMPT_RATE, 2).await?;
        self.finish(tx, visit, &user, method).await
    }

    async fn finish(
        &self,
        mut tx: Transaction,
        visit: &Visit,
        user: &User,
        method: SignInMethod,
    ) -> Result<NewSession, Error> {
        let origin = visit.origin(method);
        let started = self.start_session(&mut tx, user.id, visit, origin).await?;
        self.commit_session(tx, visit, user, &started).await?;
        Ok(started)
    }

    /// Commits a started session together with its audit entries.
    pub(crate) async fn commit_session(
        &self,
        mut tx: Transaction,
        visit: &Visit,
        user: &User,
        started: &NewSession,
    ) -> Result<(), Error> {
        let rights = tx.rights(user.id).await?;
        let actor = started.session.accept(user, rights, visit.now)?;
        let call = visit.call(actor);
        if started.session.origin.method == SignInMethod::PasswordRecovery {
            let left = tx.recovery_codes_left(user.id).await?;
            let after = json!({"codes_left": left});
            let event = UserEvent::new("recovery_code.used", user.id).with(&after);
            self.record_for_user(&mut tx, &call, event).await?;
        }
        let event = UserEvent {
            action: "session.started",
            user: user.id,
            subject: started.session.id.0,
            before: None,
            after: Some(&audited(&started.session)),
        };
        self.commit_for_user(tx, &call, event).await
    }

    /// Charges an attempt before the password is compared, so that concurrent attempts count like
    /// sequential ones.
    async fn count_attempt(
        self: &Arc<Self>,
        visit: &Visit,
        email: &str,
        user: Option<&User>,
    ) -> Result<CountedAttempt, Error> {
        let browser = visit.known_browser.as_ref().map(Secret::hash);
        let known = match &browser {
            Some(hash) => self.store.read().await?.known_browser(hash).await?,
            None => None,
        };
        let is_own = |user: &User| known.is_some_and(|known| known.is_of(user.id, visit.now));
        let attempt = match browser.filter(|_| user.is_some_and(is_own)) {
            Some(hash) => CountedAttempt {
                bucket: format!("sign-in browser {hash}"),
                owner: PasswordOwner::Known,
            },
            None => CountedAttempt {
                bucket: format!(
                    "sign-in account {}",
                    sha256(email.to_lowercase().as_bytes())
                ),
                owner: PasswordOwner::Stranger(visit.client_ip),
            },
        };
        let taken = self.charge_attempt(&attempt.bucket, visit.now).await;
        if let Err(Error::TooManyAttempts { .. }) = taken {
            self.note_refusal(visit, email, user, TOO_MANY_ATTEMPTS);
        }
        taken.map(|()| attempt)
    }

    async fn charge_attempt(&self, bucket: &str, now: Timestamp) -> Result<(), Error> {
        let group = self
            .writes
            .take_tokens(bucket, ATTEMPT_RATE, 1, now)
            .await?;
        if 0 < group.taken {
            return Ok(());
        }
        counter!(metric::RATE_LIMITED, "class" => "account").increment(1);
        let next = group.full_at_micros - ATTEMPT_RATE.token_micros() * (ATTEMPT_RATE.burst - 1);
        let wait = (next - now.as_microsecond()).div_euclid(1_000_000) + 1;
        Err(Error::TooManyAttempts {
            retry_after_secs: u64::try_from(wait).unwrap_or(1).max(1),
        })
    }
}
