//! The cases, and the function that runs all of them.

mod connections;
mod events;
mod handshake;

use crate::report::{CaseResult, Report};
use crate::settings::Settings;

/// Runs all cases against an agent. After a handshake that failed the remaining cases are not run.
pub fn check(settings: &Settings) -> Report {
    let mut results = Vec::new();
    let cases = handshake::CASES.iter();
    let cases = cases.chain(events::CASES).chain(connections::CASES);
    for case in cases {
        let outcome = (case.run)(settings);
        let passed = outcome.is_ok();
        results.push(CaseResult {
            name: case.name,
            rule: case.rule,
            passed,
            reason: outcome.unwrap_or_else(Some),
        });
        if !passed && case.name == handshake::FIRST {
            break;
        }
    }
    Report::new(settings.socket.display().to_string(), results)
}
