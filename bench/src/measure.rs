//! Measurements by kind of case.

pub(crate) mod capacity;
pub(crate) mod case_runner;
pub(crate) mod comparison;
pub(crate) mod count;
pub(crate) mod fresh;
pub(crate) mod rehearsal;
pub(crate) mod reload;
pub(crate) mod rounds;
