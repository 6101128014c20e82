//! HTTP/2 towards targets: connections that carry many requests at once.
//!
//! A [`Trunk`](trunk::Trunk) is one connection, driven by a task of its own; a [`Lane`] is one
//! request's place on it; a [`Call`] is the request itself, which its own task sends and whose answer
//! it reads, so that a slow client slows nothing but its own stream.

mod call;
mod io;
mod news;
mod pulse;
mod trunk;
mod trunks;
mod upload;

pub use call::{Call, CallFault, Dug, Unsent, call_tunnel};
pub use news::Waiting;
pub use trunk::Lane;
pub use trunks::{Building, Trunks, Way};
