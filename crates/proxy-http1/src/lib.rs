//! Parsing and serialization of HTTP/1.1 messages, for both sides of a proxy.
//!
//! `proxy-framing` validates all input first. Therefore this crate reports no errors, and returns
//! nothing for input that is not a message.

mod body_decoder;
mod body_length;
mod buffer_pool;
mod chunked_decoder;
mod fields;
mod find_byte;
mod message_writer;
mod names;
mod read_strategy;
mod request;
mod response;
mod response_head_writer;
mod splice;
mod verbatim;

pub use body_decoder::BodyDecoder;
pub use body_length::BodyLength;
pub use buffer_pool::{bound_map, lines, recycle_map};
pub use fields::{Head, write_line};
pub use message_writer::{Framing, MAX_TURN_PIECES, MessageWriter, WriteError};
pub use read_strategy::{ReadStrategy, limit_large_reads, poll_hang_up};
pub use request::{RawTarget, RequestHead, read_request, write_request};
pub use response::{ResponseHead, read_response, read_verbatim};
pub use response_head_writer::{ResponseContext, Written, write_response};
pub use splice::{Pipe, SpliceFrom, SpliceTo, close_idle_pipes};
pub use verbatim::VerbatimFields;
