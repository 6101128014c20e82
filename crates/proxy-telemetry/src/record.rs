//! Log records: borrowed facts, written as one JSON line each.

mod access;
mod error;
mod escape;
mod json;
mod limit;
mod redact;
mod timestamp;

pub use access::{AccessFormat, AccessRecord, OptionalField};
pub use error::{ErrorRecord, Level};
pub use limit::LimitRecord;
pub(crate) use timestamp::TimestampText;
