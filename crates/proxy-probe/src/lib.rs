//! Active health checks of targets, outside the threads that serve requests.

#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod check;
mod connection;
mod error;
mod grpc;
mod models;
mod peers;
mod probe;
mod settings;

pub use peers::Peers;
pub use probe::{Probe, run};
pub use settings::{Check, ProbeSettings};
