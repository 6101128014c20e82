//! One request from head to log line. Read `pipeline.rs` first.
//!
//! State is `Plan` (immutable), `Worker` (one core's, never shared) or `Shared` (atomics only). A
//! policy returns or leaves a fact; `failure.rs` alone turns a failure into an answer; the record of
//! a request and all it holds are settled when its response body is dropped.

mod pipeline;

mod exchange;
mod state;
mod view;

mod claims;
mod forward;
mod forwarding;
mod hop;
mod interim;
mod names;
mod policy;
mod upgrade;
mod websocket;

mod body;
mod closing;
mod file_body;
mod origin;
mod removal;
mod request_body;
mod trailers;

mod answer;
mod builtin;
mod failure;
mod files;
mod panic;
mod refused_head;
mod trouble;
mod unread;

mod client;
mod client_body;
mod correlation;
mod date;
mod disk;
mod host_value;
mod terms;
mod time;
mod tunnel;

pub use answer::RawAnswer;
pub use body::{Body, BodyError};
pub use client::{Bootstrapped, Client, GONE, Stream, Switched, TlsSession};
pub use client_body::{ClientBody, CutOff, Source, Streamed};
pub use correlation::{IdSource, is_acceptable};
pub use failure::{framing_problem, timeout_problem};
pub use forwarding::Peer;
pub use interim::informational;
pub use pipeline::handle;
pub use refused_head::refused_head_problem;
pub use request_body::{BodyFault, RequestBody};
pub use state::{ActivePlan, Draining, Logs, Shared, UpstreamLinks, Worker};
pub use terms::ConnectionTerms;
pub use time::Time;
pub use trouble::note_connection;
pub use tunnel::{Carried, TunnelEnd, join};
pub use unread::{UnreadRequest, refuse_unread};
