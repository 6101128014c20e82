//! Pages of the person: set-up, invitation, and the look of pages.

pub(crate) mod appearance;
pub(crate) mod invitation;
pub(crate) mod set_up;
