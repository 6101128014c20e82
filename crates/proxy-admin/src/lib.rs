//! Admin interface of a running proxy: health, status, metrics, and the effective configuration.
//!
//! [`serve`] answers requests at one listening socket, if the socket's [`Access`] authorizes them.
//! All sockets share an [`AdminState`]. The interface runs on the control thread, and never
//! accesses a worker.

mod json_body;

mod access;
mod target_patch;

mod state;

mod agents;
mod cache;
mod plan_documents;
mod stats;
mod upstreams;

mod answer;
mod endpoints;
mod explain;
mod service;

mod connection;
mod serve;

pub use access::Access;
pub use access::token::{Token, TokenError, WidePermissions};
pub use serve::{Listener, serve};
pub use state::{AdminState, BuildInfo, Sources};
