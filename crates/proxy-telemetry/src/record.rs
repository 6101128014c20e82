//! Log records: borrowed facts, written as one JSON line each.

mod access;
mod digits;
mod error;
mod escape;
mod event;
mod json;
mod limit;
mod note;
mod phrases;
mod redact;
mod short;
mod timestamp;

pub use access::{AccessFormat, AccessRecord, OptionalField};
pub use error::{ErrorRecord, Level};
pub use event::{EventFields, EventRecord};
pub use limit::LimitRecord;
pub(crate) use note::SpareNotes;
pub use note::{RequestFacts, RequestNote};
pub use phrases::{Phrase, Phrases};
pub(crate) use timestamp::TimestampText;
