//! Records of requests: access log, error log, metrics.

pub(crate) mod agent_record;
pub(crate) mod completion;
pub(crate) mod error_log;
pub(crate) mod exchange_record;
pub(crate) mod request_trace;
pub(crate) mod retry_record;
pub(crate) mod span_export;
pub(crate) mod target_outcome;
pub(crate) mod wait_times;
