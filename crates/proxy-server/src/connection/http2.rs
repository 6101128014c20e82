//! HTTP/2 to clients.
//!
//! The connection is one task, and each of its streams is served by a task of a pool; they share
//! the `h2` connection, which implements framing and flow control. A stream keeps its data in its
//! own task until the client's windows have room, so that no data accumulates for a client that
//! does not read, and the stream's own deadline applies.

mod connection;
mod io;
mod refused_streams;
mod response_sender;
mod session;
pub(crate) mod settings;
mod stream;
mod target;
pub(crate) mod task_pool;

pub(crate) use connection::serve;
