//! Surroundings of the process: clock, memory, descriptors, signals, blocking files, tasks.

pub(crate) mod descriptors;
pub(crate) mod disk_thread;
pub(crate) mod signals;
pub(crate) mod system_clock;
pub(crate) mod system_memory;
pub(crate) mod systemd;
pub(crate) mod task_scope;
