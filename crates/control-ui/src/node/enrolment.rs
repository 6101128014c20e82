//! Enrolment tokens: how nodes come to a project.

pub(crate) mod list;
pub(crate) mod new;
