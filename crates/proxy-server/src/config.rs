//! Configurations: options of the process, deliveries, worst-case memory.

pub(crate) mod delivery;
pub(crate) mod live_tests;
pub(crate) mod options;
pub(crate) mod worst_case;
