//! The targets behind a name, and which is next.
//!
//! A [`TargetState`] is what all workers know of one target; a [`Ready`] list is one worker's view of
//! the targets that may be called; [`Balancing`] picks one of them.

mod balancing;
mod identity;
mod ready;
mod target;

pub use balancing::Balancing;
pub use identity::TargetId;
pub use ready::Ready;
pub use target::{TargetState, Unhealthy};
