//! Pages of nodes.

pub(crate) mod command;
pub(crate) mod detail;
pub(crate) mod drift;
pub(crate) mod enrolment;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod standing;
pub(crate) mod traffic;
