//! HTTP/3 to clients, over QUIC.
//!
//! Each worker has an endpoint for each listener with HTTP/3: its UDP sockets, the QUIC state
//! machine, and the timer of all its connections. A connection stays with the worker that accepted
//! it. Its IDs name the endpoint; any other endpoint that receives one of its datagrams forwards it
//! there. One task drives a connection, and another serves each request stream, as over HTTP/2;
//! they share the QUIC connection.

mod clock;
mod connection;
mod contain;
mod driver;
mod endpoint;
mod handshake_load;
mod request_body;
mod response_sender;
mod session;
mod settings;
mod socket;
mod steering;
mod stream;
mod wake_timer;

pub(crate) use connection::MAX_PIECE_BYTES;
pub(crate) use endpoint::{Endpoint, EndpointParts, start};
pub(crate) use settings::{Http3Settings, RECEIVE_WINDOW, SEND_WINDOW, held_section_bytes};
pub(crate) use steering::{Http3Shared, RelayReceiver};
