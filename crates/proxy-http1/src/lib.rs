//! HTTP/1.1 messages, taken apart and put together for both sides of a proxy.
//!
//! What is read here has been judged by `proxy-framing` before: nothing looks for faults again, and
//! what is none the less no message gives nothing rather than a guess.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod appetite;
mod dechunk;
mod fields;
mod names;
mod outgoing;
mod reading;
mod request;
mod respond;
mod response;
mod seek;
mod spare;
mod splice;

pub use appetite::{Appetite, poll_hang_up};
pub use fields::{Head, write_line};
pub use outgoing::{Framing, Outgoing, Stuck};
pub use reading::{Extent, Reading};
pub use request::{RawTarget, RequestHead, read_request, write_request};
pub use respond::{Respond, Written, write_response};
pub use response::{ResponseHead, read_response};
pub use spare::{bound_map, keep_map, lines};
pub use splice::{Pipe, SpliceFrom, SpliceTo, close_spare_pipes};
