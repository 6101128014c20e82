//! Responses of the proxy's own handlers: static files and built-in pages.

pub(crate) mod acme;
pub(crate) mod answers;
pub(crate) mod builtin;
pub(crate) mod cache;
pub(crate) mod files;
