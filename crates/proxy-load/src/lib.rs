//! The load generator of benchmarks, demo and soak: clients and an upstream in one thread.

pub mod clock;
pub mod command;
pub mod meter;
pub mod spop;

mod backend;
mod clients;
mod connection;
mod generator;
mod http;
mod poller;
mod request_error;
mod script;
mod steady;

pub use generator::LoadGenerator;
pub use generator::progress::SteadyOutcome;
pub use steady::{RunningLoad, SteadyLoad};
