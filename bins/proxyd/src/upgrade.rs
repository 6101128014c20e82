//! What an upgrade starts.

use proxy_server::Program;
use std::time::Duration;

/// Names how many milliseconds a new process may take until it serves, in place of 30 s: for tests.
const TIMEOUT: &str = "PROXYD_UPGRADE_TIMEOUT_MS";

/// This program, as it was started.
pub(crate) fn program() -> Option<Program> {
    match Program::of_this_process() {
        Ok(program) => Some(patient(program)),
        Err(error) => {
            tracing::warn!(%error, "no upgrades: nobody can tell how this program was started");
            None
        }
    }
}

fn patient(program: Program) -> Program {
    let time = std::env::var(TIMEOUT).ok();
    match time.and_then(|millis| millis.parse().ok()) {
        Some(millis) => Program {
            timeout: Duration::from_millis(millis),
            ..program
        },
        None => program,
    }
}
