//! HTTP/1.1 messages, and the connections that carry them.

pub(crate) mod fields;
pub(crate) mod message;
pub(crate) mod wire;
