//! Pages of enrolment tokens.

pub(crate) mod list;
pub(crate) mod new;
