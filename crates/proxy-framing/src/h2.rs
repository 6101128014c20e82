//! Detection of HTTP/2 floods, by counting frames as bytes pass.
//!
//! Every frame costs its receiver work, and flow control bounds only `DATA` frames. A
//! [`FrameMeter`] grants each other kind an allowance that time and useful traffic refill; a peer
//! that exceeds it gets `ENHANCE_YOUR_CALM`. [RFC 9113 §10.5]
//!
//! The meter sees every byte before the parser, so it also rewrites header sections that the parser
//! would not check completely, or would refuse for a path that HTTP/1.1 accepts.
//! [`ResponseSections`] rewrites the sections of a target.

mod field;
mod field_kinds;
mod flood_limits;
mod frame;
mod meter;
mod open_streams;
mod pass;
mod raw_paths;
mod response_sections;
mod section;
mod written;

pub mod huffman;

pub use flood_limits::FrameKind;
pub use meter::{Flood, FrameMeter};
pub use response_sections::ResponseSections;
pub use written::{WrittenFrame, WrittenFrames};
