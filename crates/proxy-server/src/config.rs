//! Start options, configurations delivered while the process runs, live tests, and the worst-case
//! memory of a configuration.

pub(crate) mod delivery;
pub(crate) mod live_tests;
pub(crate) mod options;
pub(crate) mod worst_case;
