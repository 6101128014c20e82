//! The handling of a request, from head to log line. Read `pipeline.rs` first.
//!
//! State is `Plan` (immutable), `Worker` (one thread's, never shared) or `Shared` (atomics only). A
//! policy returns or leaves a fact; only `failure.rs` turns failures into problems; the record is
//! written and permits are released when the response body is dropped.

mod pipeline;

mod exchange;
mod policy;

mod agents;
mod forward;
mod local;
mod relay;

mod record;
mod response;

mod health;
mod worker;

mod failure;
mod limits;
mod upload;

mod headers;

pub use failure::refused_head::refused_head_problem;
pub use failure::{connect_failure_text, framing_problem, timeout_problem};
pub use headers::correlation::{IdSource, is_acceptable, random_key};
pub use headers::forwarded_headers::Peer;
pub use limits::admission::Admission;
pub use limits::in_flight_limit::InFlightLimit;
pub use limits::route_limits::{RateBuckets, RateRule, RouteLimits};
pub use limits::shared_limit::SharedLimit;
pub use pipeline::handle;
pub use record::error_log::{count_closed_connection, log_connection_problem};
pub use relay::{Relay, RelayStream, open_relay};
pub use response::body::{Body, BodyError};
pub use response::early_refusal::{UnreadRequest, refuse_unread};
pub use response::interim::informational;
pub use response::local_reply::RawAnswer;
pub use response::tunnel::{CarriedBytes, IdleTimer, SwitchedConnection, TunnelEnd, join};
pub use response::upgradable_response::Reply;
pub use upload::client_body::{
    BodyAborted, ClientBody, CopiedBody, HeldBody, Inspected, Source, Streamed,
};
pub use upload::request_body::{RequestBody, RequestBodyError};
pub use worker::active_plan::{ActivePlan, UpstreamConnectors};
pub use worker::challenge_tokens::ChallengeTokens;
pub use worker::connection_info::{
    ConnectionInfo, ExtendedConnectProtocol, REMOVED_LISTENER, RequestStream, TlsSession,
    must_close_idle,
};
pub use worker::connection_terms::ConnectionTerms;
pub use worker::password_checks::PASSWORD_THREADS;
pub use worker::password_checks::hash_gate::HashGate;
pub use worker::shadow_counters::MAX_COPIES;
pub use worker::state::{Draining, Logs, Shared, Worker};
pub use worker::time::Time;
