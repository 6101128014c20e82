//! Requests of browsers: fields, cookies, actor, failures.

pub(crate) mod failure;
pub(crate) mod fields;
pub(crate) mod note;
pub(crate) mod path;
pub(crate) mod theme;
pub(crate) mod visit;
