//! Asks targets whether they are well, beside the threads that serve requests.

#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod check;
mod connection;
mod error;
mod grpc;
mod models;
mod prober;
mod settings;

pub use prober::{Probe, Prober};
pub use settings::{Check, ProbeSettings};
