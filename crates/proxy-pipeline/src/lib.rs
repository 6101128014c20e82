//! The handling of a request, from head to log line. Read `pipeline.rs` first.
//!
//! State is `Plan` (immutable), `Worker` (one thread's, never shared) or `Shared` (atomics only). A
//! policy returns or leaves a fact; only `failure.rs` turns failures into problems; the record is
//! written and permits are released when the response body is dropped.

mod pipeline;

mod active_plan;
mod agent_record;
mod agents;
mod exchange;
mod state;
mod view;

mod claims;
mod forward;
mod forwarded_headers;
mod hop_by_hop;
mod inbound_head;
mod indexed_headers;
mod interim;
mod names;
mod policy;
mod upgrade;
mod websocket;

mod admission;
mod body;
mod body_buffer;
mod completion;
mod compressed_body;
mod file_body;
mod held_request;
mod held_response;
mod in_flight_limit;
mod origin;
mod places;
mod removal;
mod reply;
mod request_body;
mod retry_record;
mod route_limits;
mod shadow;
mod shadow_counters;
mod shared_limit;
mod trace_context;
mod trailers;

mod builtin;
mod early_reply;
mod error_log;
mod failure;
mod files;
mod local_reply;
mod panic;
mod refused_head;

mod client_body;
mod connection_info;
mod correlation;
mod date;
mod disk;
mod host_value;
mod terms;
mod time;
mod tunnel;

pub use active_plan::{ActivePlan, UpstreamConnectors};
pub use admission::Admission;
pub use body::{Body, BodyError};
pub use client_body::{BodyAborted, ClientBody, CopiedBody, HeldBody, Inspected, Source, Streamed};
pub use connection_info::{
    ConnectionInfo, ExtendedConnectProtocol, REMOVED_LISTENER, RequestStream, TlsSession,
};
pub use correlation::{IdSource, is_acceptable, random_key};
pub use early_reply::{UnreadRequest, refuse_unread};
pub use error_log::log_connection_problem;
pub use failure::{framing_problem, timeout_problem};
pub use forwarded_headers::Peer;
pub use in_flight_limit::InFlightLimit;
pub use interim::informational;
pub use local_reply::RawAnswer;
pub use pipeline::handle;
pub use refused_head::refused_head_problem;
pub use reply::Reply;
pub use request_body::{RequestBody, RequestBodyError};
pub use route_limits::{RateBuckets, RateRule, RouteLimits};
pub use shadow_counters::MAX_COPIES;
pub use shared_limit::SharedLimit;
pub use state::{Draining, Logs, Shared, Worker};
pub use terms::ConnectionTerms;
pub use time::Time;
pub use tunnel::{Carried, Switched, TunnelEnd, join};
