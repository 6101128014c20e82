//! Permits for work that is expensive in time or memory: they bound the concurrent work in total
//! and per owner.

mod body;
mod fair;
mod heavy;
mod owner;
mod password;

pub use body::{AdmittedBody, BodyPermit, MAX_SMALL_BYTES};
pub(crate) use body::{BodyKind, BodyPermits};
pub(crate) use fair::{BudgetLimits, FairPermits};
pub(crate) use heavy::HeavyPermits;
pub(crate) use password::{PasswordOwner, PasswordPermits};
