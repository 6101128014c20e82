//! Header fields: names, indexes, forwarding, hop-by-hop removal, trace context.

pub(crate) mod correlation;
pub(crate) mod forwarded_headers;
pub(crate) mod forwarding_claims;
pub(crate) mod header_edits;
pub(crate) mod header_limits;
pub(crate) mod hop_by_hop;
pub(crate) mod host_value;
pub(crate) mod http2_fields;
pub(crate) mod inbound_head;
pub(crate) mod indexed_headers;
pub(crate) mod names;
pub(crate) mod trace_context;
pub(crate) mod trailers;
pub(crate) mod websocket;
