//! Users: sessions, sign-in, invitations, resets, API keys.

pub(crate) mod api_key;
pub(crate) mod identity;
pub(crate) mod invitation;
pub(crate) mod password_reset;
pub(crate) mod session;
pub(crate) mod setup_link;
pub(crate) mod sign_in;
pub(crate) mod user;
