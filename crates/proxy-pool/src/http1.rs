//! HTTP/1.1 towards targets: one request at a time on a connection that its own exchange drives.
//!
//! [`Connection`] is what a pool keeps. Underneath, [`Outgoing`](outgoing::Outgoing) writes the
//! request and [`Incoming`](incoming::Incoming) reads the response, every byte of which
//! `proxy-framing` has judged before it is parsed here.

mod connection;
mod dechunk;
mod head;
mod incoming;
mod outgoing;

pub use connection::{Connection, Tunnel};
