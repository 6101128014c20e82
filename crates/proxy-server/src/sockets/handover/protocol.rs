//! What both processes of a handover agree on.

/// The environment variable with the process id of the sender: standard input is where the sockets
/// come from.
pub(super) const PREDECESSOR_VARIABLE: &str = "PROXYD_UPGRADE_FROM";

/// The environment variable with the states of the sender's targets. A new process that does not read
/// it begins anew.
pub(super) const KNOWLEDGE_VARIABLE: &str = "PROXYD_UPGRADE_KNOWLEDGE";

/// Sent by the new process when it is ready, and by the old one to confirm.
pub(super) const READY_BYTE: u8 = b'!';
