//! Messages and frames of HTTP, as far as the load needs them.

pub(crate) mod frame;
pub(crate) mod head;
pub(crate) mod http1;
pub(crate) mod http2;
