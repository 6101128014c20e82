//! Sign-in: the step between the password and the second factor, and browsers that are known.

use crate::access::refusal::Refusal;
use crate::account::session::SessionOrigin;
use control_wire::UserId;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// Time limit for the second factor.
const SECOND_FACTOR_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);
/// Time for which a browser is known after its last sign-in.
const KNOWN_BROWSER_LIFETIME: SignedDuration = SignedDuration::from_hours(90 * 24);

/// A sign-in with a right password that waits for the second factor; its secret is not a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingSignIn {
    /// Identifier, which is not the secret of the cookie.
    pub id: Uuid,
    /// User with the right password.
    pub user: UserId,
    /// Method, address and browser of its beginning.
    pub origin: SessionOrigin,
    /// Expiry.
    pub ends_at: Timestamp,
}

/// A browser in which a user signed in before: the lockout by wrong passwords from other browsers does not apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownBrowser {
    /// The user.
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

    /// Checks that a second factor still completes it.
    ///
    /// # Errors
    ///
    /// [`Refusal::Ended`] after 5 minutes.
    pub fn check(&self, now: Timestamp) -> Result<(), Refusal> {
        (now < self.ends_at).then_some(()).ok_or(Refusal::Ended)
    }
}

impl KnownBrowser {
    /// Returns true if it is known for `user`.
    pub fn is_of(&self, user: UserId, now: Timestamp) -> bool {
        self.user == user && now < self.seen_at + KNOWN_BROWSER_LIFETIME
    }

    /// Browsers with a last sign-in before this time are no longer known.
    pub fn horizon(now: Timestamp) -> Timestamp {
        now - KNOWN_BROWSER_LIFETIME
    }
}
