//! Frames and messages between the proxy and its agents.
//!
//! An agent is a program that decides about requests: it listens on a Unix socket, and the proxy
//! connects to it. This crate has the whole protocol as values: [`read_frame`] finds the next frame
//! in received bytes, [`ProxyMessage`] and [`AgentMessage`] encode and decode the messages of each
//! side. It reads no socket and no clock. The protocol's page is
//! `docs/reference/agent-protocol.md`.
//!
//! # Trust
//!
//! Both sides decode within bounds: a frame's claimed length is compared with its limit before any
//! of its payload is read, and no memory is reserved from a claimed length or count. The proxy
//! decodes strictly: an unknown field or an invalid value of an agent's message is an error, never
//! a default. For a decision that is wrong, too long or incomplete, [`DecisionPrefix`] parses the
//! beginning: a denial is valid regardless of the remainder. An agent skips unknown fields, so that
//! a newer proxy can add some.
//!
//! # Examples
//!
//! ```
//! use agent_protocol::{
//!     AgentMessage, Allow, Decision, DecisionMessage, Encoding, RequestId, read_frame,
//! };
//!
//! let answer = AgentMessage::Decision(DecisionMessage {
//!     id: RequestId::new(7).unwrap(),
//!     seq: 0,
//!     decision: Decision::Allow(Allow::default()),
//! });
//! let mut bytes = Vec::new();
//! answer.encode(Encoding::Json, 10_240, &mut bytes).unwrap();
//!
//! let (frame, length) = read_frame(&bytes, 10_240).unwrap().unwrap();
//! assert_eq!(length, bytes.len());
//! assert_eq!(frame.payload, br#"{"id":7,"seq":0,"decision":"allow"}"#);
//! assert_eq!(AgentMessage::decode(frame, Encoding::Json).unwrap(), answer);
//! ```

mod bounded;
mod bytes;
mod decision;
mod encoding;
mod error;
mod event;
mod frame;
mod handshake;
mod header;
mod id;
mod message;
mod metadata;
mod object;
mod schema;
mod text;

pub use bytes::BodyData;
pub use decision::message::DecisionMessage;
pub use decision::prefix::DecisionPrefix;
pub use decision::{Allow, Block, Challenge, Decision, MAX_CHALLENGES, MAX_REASON_BYTES, Redirect};
pub use encoding::Encoding;
pub use error::{DecodeError, DecodeErrorKind, EncodeError};
pub use event::{
    BodyChunk, Cancel, Completion, EventKind, RequestHeaders, ResponseHeaders, TlsClient,
};
pub use frame::{Frame, FrameError, FrameType, LENGTH_BYTES, MIN_FRAME_LIMIT_BYTES, read_frame};
pub use handshake::{
    BODY_PARTS, BodyMode, Hello, MAX_HANDSHAKE_BYTES, MAX_PART_BYTES, PROTOCOL_VERSION, Wants,
    Welcome, WelcomeError,
};
pub use header::{
    Header, HeaderEdit, HeaderError, MAX_HEADER_EDITS, MAX_HEADERS, PROTECTED_NAMES, RemovedName,
    is_protected,
};
pub use id::RequestId;
pub use message::{AgentMessage, Drain, ErrorCode, ErrorMessage, ProxyMessage};
pub use metadata::{
    MAX_METADATA_ENTRIES, MAX_METADATA_KEY_BYTES, MAX_METADATA_VALUE_BYTES, Metadata,
    MetadataByAgent,
};
pub use schema::schema_json;
pub use text::Text;
