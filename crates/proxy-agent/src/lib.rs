//! Calls external agents, which decide about requests, over Unix sockets, TCP and TLS.
//!
//! An [`AgentClient`] keeps the connections of one worker to one agent. A [`Session`] is one
//! request on one connection. Callers enforce deadlines: a dropped call is abandoned.

mod call_context;
mod client;
mod connection;
mod early_denial;
mod error;
mod ext_authz;
mod forward_auth;
mod guarded_stream;
mod http_answer;
mod link;
mod native;
mod outcome;
mod session;

pub use call_context::CallContext;
pub use client::AgentClient;
pub use connection::EventNumber;
pub use early_denial::EarlyDenial;
pub use error::CallError;
pub use link::AgentUpstream;
pub use outcome::{AgentOutcome, BreakerResult, outcomes_page};
pub use session::{HeadAnswer, Session};
