//! Log records, encoded as one line of JSON each.

mod access;
mod access_format;
mod access_log_head;
mod digits;
mod error;
mod escape;
mod escaped_fields;
mod event;
mod json;
mod limit;
mod recording;
mod redact;
mod short;
mod span;
mod timestamp;

pub use access::{AccessRecord, AgentFields, AgentMetadata};
pub use access_format::{AccessFormat, OptionalField};
pub(crate) use access_log_head::HeadBufferPool;
pub use access_log_head::{AccessLogHead, AccessLogRequest};
pub use error::{ErrorRecord, Level};
pub use escaped_fields::{EscapedField, EscapedFields};
pub use event::{EventFields, EventRecord};
pub use limit::LimitRecord;
pub use recording::{RecordedFields, RecordingFormat};
pub use span::{AttemptSpan, RequestSpan};
pub(crate) use timestamp::TimestampText;
