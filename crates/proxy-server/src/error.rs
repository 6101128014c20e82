//! Reasons why the process cannot start, or a configuration cannot be applied.

pub(crate) mod apply_error;
pub(crate) mod start_error;
