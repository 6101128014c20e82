//! Pages of an organization: members, single sign-on, keys, settings, audit log.

pub(crate) mod api_keys;
pub(crate) mod audit;
pub(crate) mod installation;
pub(crate) mod members;
pub(crate) mod reset;
pub(crate) mod settings;
pub(crate) mod signing_keys;
pub(crate) mod sso;
