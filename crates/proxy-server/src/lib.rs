//! Workers, listeners, reload, drain, hand-over.
//!
//! A worker is a thread that shares nothing with the others on a request's way: see `worker.rs`, then
//! `accept.rs` and `connection.rs`. The control thread reads configurations and signals: see
//! `process.rs` and `server.rs`.

mod process;
mod server;

mod worker;

mod accept;
mod client_io;
mod conn;
mod connection;
mod linger;
mod settings;
mod transport;
mod turn_away;

mod admin;
mod links;
mod listen;
mod logs;
mod pools;
mod resolve;

pub use listen::BindFault;
pub use process::{Build, Options, StartFault, load, run};
pub use server::ApplyFault;
