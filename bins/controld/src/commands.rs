//! The commands other than `serve` and `ctl`, one file each.

pub(crate) mod admin;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod key;
