//! Pages about the user: set-up, invitation, sign-in, profile, appearance.

pub(crate) mod appearance;
pub(crate) mod identities;
pub(crate) mod invitation;
pub(crate) mod password_reset;
pub(crate) mod profile;
pub(crate) mod proof;
pub(crate) mod second_factor;
pub(crate) mod set_up;
pub(crate) mod sign_in;
