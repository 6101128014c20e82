//! TLS, HTTP/2 and gRPC at both edges of the real binary, over real sockets.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod support;

mod tls_certificates;
mod tls_clients;
mod tls_faults;
mod tls_listener;
