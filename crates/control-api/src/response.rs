//! Bodies of answers: problems, resources, wording.

pub(crate) mod page;
pub(crate) mod problem;
pub(crate) mod resource;
pub(crate) mod wording;
