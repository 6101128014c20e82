//! Message framing of HTTP/1.1 by the letter of RFC 9112, and detection of HTTP/2 floods.
//!
//! A validator is placed between a socket and an HTTP parser that accepts more than the standard.
//! It scans every byte once, in any division into pieces, and returns how many of them the parser
//! may read. It refuses messages that two parsers could interpret differently, and enforces limits
//! exactly.
//!
//! - [`RequestValidator`] scans a client's requests.
//! - [`ResponseValidator`] scans an upstream's responses; it needs the kind of each request.
//!
//! # The meaning of a verdict
//!
//! The validators decide by *prefix*: a byte is refused if no legal message can follow it. So the
//! verdict and the number of accepted bytes depend on the stream alone, never on its division into
//! pieces, and the parser only reads prefixes of legal messages: it waits for more, and never
//! answers by itself. Three errors are reported one byte late or at the end of their line, where
//! they become distinguishable: a bare CR, and a second length or coding.
//!
//! # Performance
//!
//! Lines that are whole, plain and within the limits are recognised eight or sixteen bytes at a
//! time. Everything else — a line cut by a read, an unusual byte, an error — is handled by a state
//! machine that reads one byte at a time and alone decides what is malformed. The fast path may
//! decline, but never accepts input that the machine would refuse; tests compare the two.
//!
//! # Examples
//!
//! ```
//! use proxy_framing::{FramingError, HeadLimits, RequestValidator, Stop};
//!
//! let limits = HeadLimits {
//!     max_head_bytes: 8192,
//!     max_header_count: 100,
//!     max_name_bytes: 256,
//!     max_value_bytes: 4096,
//!     max_target_bytes: 8192,
//! };
//! let mut validator = RequestValidator::new(limits);
//!
//! let good = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
//! assert_eq!(validator.scan(good).accepted, good.len());
//!
//! let bad = b"GET / HTTP/1.1\r\nHost : a.example\r\n\r\n";
//! let scan = validator.scan(bad);
//! assert_eq!(scan.stop, Some(Stop::FramingError(FramingError::SpaceBeforeColon)));
//! assert_eq!(scan.accepted, "GET / HTTP/1.1\r\nHost".len());
//! ```

mod authority;
mod body;
mod chars;
mod error;
mod fields;
mod input;
mod limits;
mod message;
mod part;
mod proxy_header;
mod request;
mod response;
mod scan;
mod start_line;

pub mod h2;

pub use authority::is_host;
pub use chars::{escaped_for_uri, needs_escape_in_uri};
pub use error::{FramingError, FramingErrorKind};
pub use fields::grpc_timeout::{read_grpc_timeout, write_grpc_timeout};
pub use fields::hops::client_of;
pub use fields::names::is_name;
pub use limits::HeadLimits;
pub use limits::measured::SizeMeter;
pub use proxy_header::{ProxiedConnection, ProxyHeader, ProxyVersion, proxy_header};
pub use request::RequestValidator;
pub use response::{RequestKind, ResponseValidator};
pub use scan::lines::{FieldLine, Lines};
pub use scan::{Eof, Scan, Stop};
