//! Request bodies, from the client to the target.

pub(crate) mod body_buffer;
pub(crate) mod client_body;
pub(crate) mod request_body;
