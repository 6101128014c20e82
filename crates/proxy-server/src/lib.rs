//! The server: workers, listeners, reload, drain, handover.
//!
//! A worker is a thread that shares nothing with other workers while it serves requests: see
//! `worker.rs`, then `accept.rs` and `http1/driver.rs`. The control thread handles configuration
//! and signals: see `control_loop.rs` and `server.rs`.

mod options;
mod probes;
mod process;
mod start_error;

mod control_loop;
mod events;
mod handover;
mod server;
mod server_handle;
mod signals;
mod systemd;
mod worker_pool;

mod delivery;
mod disk_thread;
mod heartbeat;

mod essential_tasks;
mod task_scope;
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
mod negotiated;
mod overload;
mod preface;
mod proxy_protocol;
mod ready_connection;
mod settings;
mod tick_timer;
mod timeout;
mod tls_stream;

mod admin;
mod apply_error;
mod breaker_states;
mod configuration;
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
mod reconnection;
mod socket_assignment;
mod system_clock;
mod system_memory;
mod target_event;
mod target_health;
mod tls;
mod worst_case;

pub use apply_error::ApplyError;
pub use configuration::{load, worst_case};
pub use delivery::{Deliveries, Delivery, Follow, Follower, PrivateKeys, StartClient, Stop};
pub use events::Events;
pub use handover::Program;
pub use listen::BindError;
pub use options::{Build, Options, Source};
pub use process::run;
pub use server_handle::{HandleOptions, ServerHandle};
pub use start_error::StartError;
pub use worst_case::WorstCase;
