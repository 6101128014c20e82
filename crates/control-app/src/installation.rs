//! The installation as a whole: set-up, master keys, housekeeping, status.

pub(crate) mod housekeeping;
pub(crate) mod master_key;
pub(crate) mod setup;
pub(crate) mod status;
