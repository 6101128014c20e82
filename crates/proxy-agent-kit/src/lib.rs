//! One trait for an agent that decides about the proxy's requests.
//!
//! [`Agent`] has one method for each event, of which only the first must be written; [`run`]
//! listens on a Unix socket until SIGTERM or SIGINT. The messages are `agent-protocol`'s.

mod agent;
mod connection;
mod requests;
mod run;
mod socket;

pub use agent::{Agent, AgentFailure, Answer, allow, block, challenge, redirect};
pub use agent_protocol::{
    Allow, Block, BodyChunk, BodyMode, Challenge, Completion, Decision, EventKind, Header,
    HeaderEdit, HeaderError, Metadata, Redirect, RequestHeaders, ResponseHeaders, Text, TlsClient,
    Wants,
};
pub use run::{run, serve};
