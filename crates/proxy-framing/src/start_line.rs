//! The first line of a message: a request line with its target, or a status line.

pub(crate) mod request_line;
pub(crate) mod status_line;
pub(crate) mod target;
