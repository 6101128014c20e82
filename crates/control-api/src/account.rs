//! Users: sessions, sign-in, second factors, invitations, API keys.

pub(crate) mod api_key;
pub(crate) mod invitation;
pub(crate) mod member_sign_in;
pub(crate) mod second_factor;
pub(crate) mod session;
pub(crate) mod setup;
pub(crate) mod sign_in;
pub(crate) mod user;
