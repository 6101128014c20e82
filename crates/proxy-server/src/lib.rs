//! Workers, listeners, reload, drain, hand-over.
//!
//! A worker is a thread that shares nothing with the others on a request's way: see `worker.rs`, then
//! `accept.rs` and `connection.rs`. The control thread reads configurations and signals: see
//! `process.rs` and `server.rs`.

mod process;

mod events;
mod handover;
mod life;
mod manager;
mod server;
mod signals;
mod staff;

mod disk_thread;
mod heartbeat;

mod worker;

mod accept;
mod attend;
mod beat;
mod carrier;
mod conn;
mod connection;
mod exchange;
mod handshake;
mod http2;
mod inbox;
mod introduction;
mod linger;
mod patience;
mod preface;
mod secure;
mod settings;
mod transport;
mod turn_away;

mod admin;
mod doors;
mod heritage;
mod links;
mod listen;
mod logs;
mod pools;
mod resolve;
mod target_health;
mod tls;

pub use events::Events;
pub use handover::Program;
pub use listen::BindFault;
pub use process::{Build, Options, Source, StartFault, load, run};
pub use server::ApplyFault;
