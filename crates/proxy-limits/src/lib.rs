//! How fast, how many, how large.
//!
//! Nothing here reads a clock, allocates per request, or knows about HTTP. Callers pass `now`; every
//! decision is a value.

mod gauge;

pub use gauge::{Full, Gauge, Permit};
