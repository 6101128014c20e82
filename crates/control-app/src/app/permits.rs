//! Permits for work that is expensive in time or memory: they bound the concurrent work in total
//! and per owner.

mod body;
mod fair;
mod heavy;
mod owner;

pub use body::{AdmittedBody, BodyPermit, MAX_SMALL_BYTES};
pub(crate) use body::{BodyKind, BodyPermits};
pub(crate) use heavy::HeavyPermits;
