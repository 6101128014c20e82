//! The server: workers, listeners, reload, drain, handover.
//!
//! A worker is a thread that shares nothing with other workers while it serves requests: see
//! `worker.rs`, then `worker/accept.rs` and `connection/http1/driver.rs`. The control thread
//! handles configuration and signals: see `control_loop.rs` and `reload/server/apply.rs`.

mod process;

mod control_loop;
mod reload;

mod targets;
mod tls;

mod worker;

mod connection;
mod http3;

mod config;
mod error;
mod listen;
mod sockets;

mod admin;
mod observe;
mod runtime;

pub use config::delivery::{
    BundleCheck, BundleFiles, Deliveries, Delivery, Follow, Follower, PrivateKeys, StartClient,
    Stop,
};
pub use config::live_tests::{LiveOutcome, LiveTests};
pub use config::options::{Build, Options, Source};
pub use config::worst_case::WorstCase;
pub use control_loop::configuration::{failed_tests_and_files, load, worst_case};
pub use error::apply_error::ApplyError;
pub use error::start_error::StartError;
pub use listen::{BindError, probe_tcp, probe_udp};
pub use observe::events::Events;
pub use process::run;
pub use process::server_handle::{HandleOptions, ServerHandle};
pub use sockets::handover::Program;
