//! HTTP/1.x to clients: one task serves a connection's requests in sequence.

pub(crate) mod connection;
pub(crate) mod driver;
mod end;
mod exchange;
mod request_reader;
