//! `cargo xtask demo --check`: the demo drives itself and gives a verdict per check.

mod bulk;
mod drain;
mod plain;
mod reload;

use super::Verdict;
use super::stage::Stage;
use crate::task_error::TaskError;
use crate::terminal::{complain, say};
use std::path::Path;

/// Does something to the stage and says what it saw.
type Check = fn(&mut Stage) -> Result<String, TaskError>;

/// In order; the last one ends proxyd.
const CHECKS: &[(&str, Check)] = &[
    ("each route leads to its upstream", plain::routes),
    ("two targets take turns", plain::turns),
    ("the proxy answers for itself", plain::health),
    ("an unknown path is explained", plain::error),
    ("the admin side tells how things are", plain::admin),
    ("a WebSocket echoes", plain::websocket),
    ("a download of 1 GiB is whole", bulk::download),
    ("an upload of 1 GiB is whole", bulk::upload),
    ("memory stayed under 64 MiB", bulk::memory),
    ("a reload under load fails no request", reload::good),
    ("a reload of a bad file changes nothing", reload::bad),
    ("a drain under load fails no request", drain::drain),
];

/// Runs every check, even after one has failed.
pub(super) fn run(binary: &Path, quickstart: &Path) -> Result<Verdict, TaskError> {
    let mut stage = Stage::set(binary, quickstart)?;
    let mut verdict = Verdict {
        passed: 0,
        failed: 0,
    };
    for (name, check) in CHECKS {
        match check(&mut stage) {
            Ok(seen) => {
                verdict.passed += 1;
                say(format!("ok      {name}: {seen}"));
            }
            Err(error) => {
                verdict.failed += 1;
                say(format!("FAILED  {name}: {}", error.told()));
            }
        }
    }
    if verdict.failed > 0 {
        complain(format!("the end of proxyd's log:\n{}", stage.log()));
    }
    Ok(verdict)
}

/// `Ok` if it holds, else what was seen instead.
fn ensure(holds: bool, seen: impl FnOnce() -> String) -> Result<(), TaskError> {
    if holds {
        return Ok(());
    }
    Err(TaskError::Failed(seen()))
}
