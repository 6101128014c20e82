//! Certificates, configurations and real handshakes, in memory.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

mod client_auth;
mod client_hello;
mod expiry;
mod load;
mod obtained;
mod pins;
mod profile;
mod resumption;
mod sni;
mod staple;
mod support;
mod upstream;
mod watch;
mod watch_trust;
