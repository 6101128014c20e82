//! Events and logs of the process, and its memory.

pub(crate) mod events;
pub(crate) mod logs;
pub(crate) mod memory_watch;
