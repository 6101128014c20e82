//! Permits for work with high cost in time or memory: few at once, and only some of them for one
//! owner.

mod body;
mod fair;
mod heavy;
mod owner;
mod upload;

pub use body::BodyPermit;
pub(crate) use body::BodyPermits;
pub(crate) use heavy::HeavyPermits;
pub(crate) use upload::UploadPermits;
pub use upload::{UploadPermit, UploadPressure};
