//! Program that an upgrade starts.

use proxy_server::Program;
use std::time::Duration;

/// Environment variable for tests: maximum time until the new process serves, in milliseconds. The
/// default is 30 s.
const TIMEOUT: &str = "PROXYD_UPGRADE_TIMEOUT_MS";

/// Returns the path and arguments of the running program.
pub(crate) fn program() -> Option<Program> {
    match Program::current() {
        Ok(program) => Some(with_timeout(program)),
        Err(error) => {
            tracing::warn!(%error, "no upgrades: the path or the arguments of this program are not known");
            None
        }
    }
}

fn with_timeout(program: Program) -> Program {
    let time = std::env::var(TIMEOUT).ok();
    match time.and_then(|millis| millis.parse().ok()) {
        Some(millis) => Program {
            timeout: Duration::from_millis(millis),
            ..program
        },
        None => program,
    }
}
