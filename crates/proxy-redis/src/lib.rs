//! Rate limits that several proxies share, in Redis or Valkey. [`SharedBuckets`] is the entry point.

mod bucket;
mod client;
mod status;
mod thread;

pub use bucket::SharedRate;
pub use client::{Answer, SharedBuckets, StoreSettings};
