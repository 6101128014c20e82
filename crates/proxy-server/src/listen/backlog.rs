//! The length of an accept queue.

/// The kernel's maximum length of an accept queue, if it is known.
pub(super) fn max_queue_length() -> Option<u32> {
    let somaxconn = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?;
    somaxconn.trim().parse().ok()
}

/// `backlog` in the type of `listen`.
pub(super) fn queue_length(backlog: u32) -> i32 {
    i32::try_from(backlog).unwrap_or(i32::MAX)
}
