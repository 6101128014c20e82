//! Constants of the handover protocol between both processes.

/// The environment variable with the process id of the predecessor, which sends its sockets over
/// standard input.
pub(super) const PREDECESSOR_VARIABLE: &str = "PROXYD_UPGRADE_FROM";

/// The environment variable with the states of the predecessor's targets. A process without it
/// starts from scratch.
pub(super) const HEALTH_SNAPSHOT_VARIABLE: &str = "PROXYD_UPGRADE_KNOWLEDGE";

/// Sent by the new process when it is ready, and by the old one to confirm.
pub(super) const READY_BYTE: u8 = b'!';
