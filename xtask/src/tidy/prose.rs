//! Checks of names, comments and documentation.

pub(crate) mod naming;
pub(crate) mod noise;
pub(crate) mod opening;
pub(crate) mod ratchet;
pub(crate) mod wording;
pub(crate) mod words;
