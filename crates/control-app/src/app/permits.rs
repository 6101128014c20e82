//! Permits for work with high cost in time or memory: few at once, and only some of them for one
//! owner.

mod body;
mod fair;
mod heavy;
mod owner;

pub use body::{AdmittedBody, BodyPermit, MAX_SMALL_BYTES};
pub(crate) use body::{BodyKind, BodyPermits};
pub(crate) use heavy::HeavyPermits;
