//! Checks of crates, modules, folders and files.

pub(crate) mod folders;
pub(crate) mod layers;
pub(crate) mod manifests;
pub(crate) mod modules;
pub(crate) mod sizes;
