//! Sign-in: the pending state between password and second factor, and known browsers.

use crate::access::refusal::Refusal;
use crate::account::session::SessionOrigin;
use control_wire::UserId;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// Time limit for the second factor.
const SECOND_FACTOR_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);
/// Time from its last sign-in for which a browser is known.
const KNOWN_BROWSER_LIFETIME: SignedDuration = SignedDuration::from_hours(90 * 24);

/// A sign-in with a correct password that waits for the second factor. Its secret is not a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingSignIn {
    /// Identifier, not the secret of the cookie.
    pub id: Uuid,
    /// User with the correct password.
    pub user: UserId,
    /// Method, address and browser of the sign-in.
    pub origin: SessionOrigin,
    /// Deadline for the second factor.
    pub ends_at: Timestamp,
}

/// A browser in which a user has signed in before: wrong passwords from other browsers do not lock
/// it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownBrowser {
    /// User that signed in.
    pub user: UserId,
    /// Time of the last sign-in from this browser.
    pub seen_at: Timestamp,
}

impl PendingSignIn {
    /// Starts the wait for the second factor.
    pub fn start(id: Uuid, user: UserId, origin: SessionOrigin, now: Timestamp) -> Self {
        Self {
            id,
            user,
            origin,
            ends_at: now + SECOND_FACTOR_TIMEOUT,
        }
    }

    /// Checks that the deadline has not passed.
    ///
    /// # Errors
    ///
    /// [`Refusal::Ended`] after 5 minutes.
    pub fn check(&self, now: Timestamp) -> Result<(), Refusal> {
        (now < self.ends_at).then_some(()).ok_or(Refusal::Ended)
    }
}

impl KnownBrowser {
    /// Returns true if the browser is known for `user`.
    pub fn is_of(&self, user: UserId, now: Timestamp) -> bool {
        self.user == user && now < self.seen_at + KNOWN_BROWSER_LIFETIME
    }

    /// Time of the last sign-in before which a browser is no longer known.
    pub fn horizon(now: Timestamp) -> Timestamp {
        now - KNOWN_BROWSER_LIFETIME
    }
}
