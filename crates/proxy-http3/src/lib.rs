//! Server side of HTTP/3 (RFC 9114), with QPACK without a dynamic table (RFC 9204). The crate does
//! no I/O: the caller owns the QUIC streams and passes their bytes.
//!
//! - [`RequestReader`] splits a request stream into head, data and trailers.
//! - [`FieldSection`] decodes a header section; [`RequestHead`] validates it as a head,
//!   [`read_trailers`] as trailers.
//! - [`PeerStreams`] reads the client's unidirectional streams: control, QPACK, and unknown ones.
//! - [`FloodMeter`] limits frames and streams that cost work but carry no data.
//! - [`write_head`], [`write_trailers`] and [`write_data_header`] encode responses.
//!
//! Everything that RFC 9114 calls malformed is an [`Http3Error`] with a code and a scope, stream or
//! connection. Malformed messages are neither repaired nor forwarded.

mod code;
mod flood;
mod frame;
mod head;
mod peer_streams;
mod qpack;
mod request_reader;
mod response;
mod settings;
mod varint;

pub use code::{ErrorCode, Http3Error, Scope};
pub use flood::{Flood, FloodKind, FloodMeter};
pub use head::{RequestHead, read_trailers};
pub use peer_streams::{PeerStreams, UniStream};
pub use qpack::{Field, FieldSection, SectionLimits};
pub use request_reader::{RequestPart, RequestReader};
pub use response::{write_data_header, write_head, write_trailers};
pub use settings::{Settings, write_goaway};
