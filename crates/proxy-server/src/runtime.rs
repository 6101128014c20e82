//! Services of the operating system for the control thread: clocks, memory, file descriptors,
//! signals, blocking file operations and background tasks.

pub(crate) mod descriptors;
pub(crate) mod disk_thread;
pub(crate) mod signals;
pub(crate) mod system_clock;
pub(crate) mod system_memory;
pub(crate) mod systemd;
pub(crate) mod task_scope;
