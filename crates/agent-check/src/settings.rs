//! Settings of a check.

use agent_protocol::Header;
use std::path::PathBuf;
use std::time::Duration;

/// The agent, with the parameters of the check.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The agent's socket.
    pub socket: PathBuf,
    /// Time for each answer.
    pub timeout: Duration,
    /// Further headers of the sample requests, such as credentials without which the agent refuses
    /// them.
    pub headers: Vec<Header<'static>>,
}
