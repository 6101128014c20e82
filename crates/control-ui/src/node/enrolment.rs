//! Enrolment tokens: credentials with which nodes join a project.

pub(crate) mod list;
pub(crate) mod new;
