//! Users: authentication, sessions, sign-in, second factors, API keys.

pub(crate) mod api_key;
pub(crate) mod authenticate;
pub(crate) mod invitation;
pub(crate) mod member_sign_in;
pub(crate) mod password;
pub(crate) mod refused_sign_in;
pub(crate) mod second_factor;
pub(crate) mod session;
pub(crate) mod sign_in;
pub(crate) mod user;
pub(crate) mod user_event;
