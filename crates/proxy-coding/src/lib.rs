//! Content codings [RFC 9110 §8.4.1]: which one a client accepts, compression, and decompression within
//! limits. No I/O and no clock.

mod accepted;
mod coding;
mod decoder;
mod encoder;

pub use accepted::Accepted;
pub use coding::Coding;
pub use decoder::{Decoder, DecodingError, DecodingLimits};
pub use encoder::{CompressionLevels, Encoder};
