//! How much work an HTTP/2 peer makes, counted frame by frame as bytes pass.
//!
//! Every frame costs whoever receives it something, and flow control bounds only those that carry
//! data. A [`FrameMeter`] gives each kind of the others an allowance that comes back with time and
//! with useful traffic; a peer that uses it up is told to calm down. [RFC 9113 §10.5]

mod field;
mod flood_limits;
mod frame;
mod meter;
mod pass;
mod section;
mod written;

pub use flood_limits::FrameKind;
pub use meter::{Flood, FrameMeter};
pub use written::{WrittenFrame, WrittenFrames};
