//! HTTP/2 towards clients.
//!
//! The connection is one task, and each of its streams is served by another of a crew; they meet in the `h2` crate, which owns
//! framing and flow control. What a stream has to say waits in its own task until the client's
//! windows have room for it, so that nothing piles up behind a client that does not read, and the
//! stream's own deadline sees it.

mod connection;
mod io;
mod refused_streams;
mod response_sender;
mod session;
mod settings;
mod stream;
mod task_pool;

pub(crate) use connection::serve;
pub(crate) use settings::{builder, max_section_bytes};
pub(crate) use task_pool::TaskPool;
