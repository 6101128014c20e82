//! Single sign-on: connections, attempts, refusals, groups.

pub(crate) mod attempt;
pub(crate) mod connection;
pub(crate) mod group_mapping;
pub(crate) mod refusal;
