//! Users: sessions, sign-in, second factors, invitations, API keys.

pub(crate) mod api_key;
pub(crate) mod ended_credential;
pub(crate) mod identity;
pub(crate) mod invitation;
pub(crate) mod password_reset;
pub(crate) mod second_factor;
pub(crate) mod session;
pub(crate) mod setup_link;
pub(crate) mod sign_in;
pub(crate) mod user;
