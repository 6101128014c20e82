//! Log records, encoded as one line of JSON each.

mod access;
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

pub(crate) use access::HeadBufferPool;
pub use access::{
    AccessFormat, AccessLogHead, AccessLogRequest, AccessRecord, AgentFields, AgentMetadata,
    LineFormat, LineSyntax, OptionalField,
};
pub use error::{ErrorRecord, Level};
pub use escaped_fields::{EscapedField, EscapedFields};
pub use event::{EventFields, EventRecord};
pub use limit::LimitRecord;
pub use recording::{RecordedFields, RecordingFormat};
pub use span::{AttemptSpan, RequestSpan};
pub(crate) use timestamp::TimestampText;
