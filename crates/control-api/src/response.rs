//! Response bodies: problems, resources, error messages.

pub(crate) mod page;
pub(crate) mod problem;
pub(crate) mod resource;
pub(crate) mod wording;
