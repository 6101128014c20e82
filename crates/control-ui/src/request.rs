//! A request of a browser: its fields, its cookies, its actor, and why it fails.

pub(crate) mod failure;
pub(crate) mod fields;
pub(crate) mod note;
pub(crate) mod path;
pub(crate) mod theme;
pub(crate) mod visit;
