//! Active health checks of targets, documents that targets publish, and requests to own listeners, outside the threads that serve requests.

mod check;
mod connection;
mod document;
mod error;
mod grpc;
mod listener;
mod models;
mod peers;
mod probe;
mod settings;

pub use check::check;
pub use document::{Document, fetch};
pub use error::CheckError;
pub use listener::{ListenerAnswer, ListenerError, ListenerRequest, ListenerSocket, ask_listener};
pub use peers::Peers;
pub use probe::{Probe, run};
pub use settings::{Check, ProbeSettings};
