//! HTTP/3 on the side of a server (RFC 9114), with QPACK without a dynamic table (RFC 9204). No input and
//! output: the caller owns the QUIC streams and passes their bytes.
//!
//! - [`RequestReader`] takes a request stream apart into a head, data and trailers.
//! - [`FieldSection`] decodes a header section; [`RequestHead`] validates it, [`read_trailers`] validates trailers.
//! - [`PeerStreams`] reads the client's unidirectional streams: control, QPACK, and unknown ones.
//! - [`FloodMeter`] bounds frames and streams that cost work and carry nothing.
//! - [`write_head`], [`write_trailers`] and [`write_data_header`] encode responses.
//!
//! Everything that RFC 9114 calls malformed is an [`Http3Error`], with its code and its scope: a stream or the
//! connection. Nothing is repaired, and nothing malformed reaches a request.

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
