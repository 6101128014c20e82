//! The cookie of a session.

use control_auth::Secret;

/// Its name.
pub(crate) const SESSION_COOKIE: &str = "session";

/// The field that gives a browser its session.
pub(crate) fn set_session(secret: &Secret) -> String {
    let secret = secret.reveal();
    format!("{SESSION_COOKIE}={secret}; Path=/; HttpOnly; SameSite=Lax")
}
