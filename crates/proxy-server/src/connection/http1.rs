//! HTTP/1.x towards clients: one task serves a connection's requests one after the other.

pub(crate) mod connection;
pub(crate) mod driver;
mod end;
mod exchange;
mod request_reader;
