//! The commands beside `serve` and `ctl`, a file each.

pub(crate) mod admin;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod key;
