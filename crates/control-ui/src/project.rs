//! Projects at a glance.

mod attention;
pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod overview;
pub(crate) mod search;
pub(crate) mod settings;
pub(crate) mod traffic;
pub(crate) mod webhooks;
