//! Detection of HTTP/2 floods, by counting frames as bytes pass.
//!
//! Every frame costs its receiver work, and flow control bounds only `DATA` frames. A
//! [`FrameMeter`] gives each other kind an allowance that is refilled by time and by useful
//! traffic; a peer that exceeds it gets `ENHANCE_YOUR_CALM`. [RFC 9113 §10.5]

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
