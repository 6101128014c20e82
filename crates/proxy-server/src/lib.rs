//! The server: workers, listeners, reload, drain, handover.
//!
//! A worker is a thread that shares nothing with other workers while it serves requests: see
//! `worker.rs`, then `accept.rs` and `http1/driver.rs`. The control thread handles configuration
//! and signals: see `process.rs` and `server.rs`.

mod probes;
mod process;

mod control_loop;
mod events;
mod handover;
mod server;
mod signals;
mod systemd;
mod worker_pool;

mod delivery;
mod disk_thread;
mod heartbeat;

mod essential_tasks;
mod worker;

mod accept;
mod client_permit;
mod client_socket;
mod client_stream;
mod handshake;
mod http1;
mod http2;
mod linger;
mod negotiate;
mod overload;
mod preface;
mod proxy_protocol;
mod settings;
mod tick_timer;
mod timeout;
mod tls_stream;

mod admin;
mod breaker_states;
mod connectors;
mod descriptors;
mod dns;
mod inherited_sockets;
mod limit_registry;
mod listen;
mod listener_set;
mod logs;
mod memory_watch;
mod pools;
mod system_memory;
mod target_health;
mod tls;
mod worst_case;

pub use delivery::{Deliveries, Delivery, Follow, Follower, PrivateKeys, StartClient, Stop};
pub use events::Events;
pub use handover::Program;
pub use listen::BindError;
pub use process::{Build, Options, Source, StartError, load, run, worst_case};
pub use server::ApplyError;
pub use worst_case::WorstCase;
