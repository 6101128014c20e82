//! The load generator of benchmarks, demo and soak: clients and an upstream in one thread.

pub mod clock;
pub mod command;
pub mod meter;
pub mod spop;

mod backend;
mod capture;
mod clients;
mod connection;
mod frame;
mod generator;
mod head;
mod http1;
mod http2;
mod latency;
mod poller;
mod progress;
mod request_error;
mod request_reader;
mod script;
mod steady;
mod stream;
mod trust;

pub use generator::LoadGenerator;
pub use progress::SteadyOutcome;
pub use steady::{RunningLoad, SteadyLoad};
