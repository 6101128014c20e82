//! Where one HTTP/1.1 message ends and the next begins, to the letter of RFC 9112.
//!
//! A guard stands between a socket and an HTTP parser that is more forgiving than it should be.
//! It sees every byte once, in whatever pieces the socket gives, and says how many of them the
//! parser may have. It refuses what two parsers could read in two ways, and it knows exactly when
//! a limit is crossed.
//!
//! - [`RequestValidator`] watches what a client sends.
//! - [`ResponseValidator`] watches what an upstream answers; it must be told what was asked.
//!
//! # What a verdict means
//!
//! The guards decide by *prefix*: a byte is refused when, after it, no legal message can follow.
//! So the verdict and the number of accepted bytes depend on the stream alone, never on how it was
//! cut into pieces, and the parser behind the guard only ever sees prefixes of legal messages: it
//! waits, it never answers by itself. Three faults are told one byte late or at the end of their
//! line, because only there is their name known: a bare CR, and a second length or coding.
//!
//! # How it is fast
//!
//! Lines that are whole, plain and within the limits are recognised eight or sixteen bytes at a
//! time. All else — a line cut by a read, an unusual byte, a fault — is left to a machine that takes
//! one byte at a time and is the only authority on what is wrong. The recogniser may say "I don't
//! know" but never anything the machine would not; the tests hold the two against each other.
//!
//! # Examples
//!
//! ```
//! use proxy_framing::{Fault, HeadLimits, RequestGuard, Stop};
//!
//! let limits = HeadLimits {
//!     max_head_bytes: 8192,
//!     max_header_count: 100,
//!     max_name_bytes: 256,
//!     max_value_bytes: 4096,
//!     max_target_bytes: 8192,
//! };
//! let mut guard = RequestGuard::new(limits);
//!
//! let good = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
//! assert_eq!(guard.scan(good).accepted, good.len());
//!
//! let bad = b"GET / HTTP/1.1\r\nHost : a.example\r\n\r\n";
//! let scan = guard.scan(bad);
//! assert_eq!(scan.stop, Some(Stop::Fault(Fault::SpaceBeforeColon)));
//! assert_eq!(scan.accepted, "GET / HTTP/1.1\r\nHost".len());
//! ```

mod authority;
mod body;
mod chars;
mod chunks;
mod correlation;
mod error;
mod extension;
mod field_line;
mod fields;
mod grpc_timeout;
mod hops;
mod input;
mod limits;
mod lines;
mod measured;
mod message;
mod names;
mod plain;
mod proxy_header;
mod request;
mod request_line;
mod response;
mod runs;
mod scan;
mod status_line;
mod target;
mod values;

pub mod h2;

pub use authority::is_host;
pub use error::{FramingError, FramingErrorKind};
pub use grpc_timeout::{read_grpc_timeout, write_grpc_timeout};
pub use hops::client_of;
pub use limits::HeadLimits;
pub use lines::{FieldLine, Lines};
pub use measured::SizeMeter;
pub use proxy_header::{ProxyHeader, proxy_header};
pub use request::RequestValidator;
pub use response::{RequestKind, ResponseValidator};
pub use scan::{Eof, Scan, Stop};
