//! Conformance cases for agents: the proxy's side of the agent protocol, played against a socket.

mod case;
mod cases;
mod client;
mod report;
mod sample;
mod settings;

pub use cases::check;
pub use report::{CaseResult, Report};
pub use settings::Settings;
