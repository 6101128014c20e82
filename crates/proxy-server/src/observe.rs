//! Events and logs of the process, its memory, and the use of its limits.

pub(crate) mod cache_gauges;
pub(crate) mod events;
pub(crate) mod limit_uses;
pub(crate) mod logs;
pub(crate) mod memory_watch;
pub(crate) mod otlp;
