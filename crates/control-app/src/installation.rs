//! The installation as a whole: first start, master keys, housekeeping.

pub(crate) mod housekeeping;
pub(crate) mod master_key;
pub(crate) mod setup;
pub(crate) mod status;
