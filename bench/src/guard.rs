//! The guard of `test-all`: the counted cost of a small GET must not change.

use crate::measure::count::{self, PerRequest};
use crate::report::targets::{self, Guard, Targets};
use crate::servers::environment::{BACKEND_PORT, Environment, LoadBuild};
use crate::servers::load_process::LoadProcess;
use crate::servers::server::{OURS, Program, Server, Setup};
use crate::ship;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// Counts the cost of a small GET and compares it with the committed one.
pub(crate) fn compare(workspace: &Workspace) -> Result<(), TaskError> {
    let committed = committed(workspace)?;
    let found = count(workspace)?;
    say(format!(
        "guard: a small GET costs {:.0} instructions and {:.2} system calls",
        found.instructions, found.system_calls
    ));
    let Some(guard) = committed else {
        return Err(TaskError::Failed(format!(
            "{} holds no [guard] to compare with",
            targets::PATH
        )));
    };
    let faults = faults(&guard, &found);
    if faults.is_empty() {
        return Ok(());
    }
    Err(TaskError::Failed(format!(
        "a small GET costs {}; if it should, write it into {}",
        faults.join(" and "),
        targets::PATH
    )))
}

fn committed(workspace: &Workspace) -> Result<Option<Guard>, TaskError> {
    let path = workspace.root().join(targets::PATH);
    Targets::load(&path).map(|targets| targets.guard)
}

fn count(workspace: &Workspace) -> Result<PerRequest, TaskError> {
    let proxyd = ship::build_guarded(workspace)?;
    let environment = Environment::prepare(workspace, LoadBuild::Debug, proxyd)?;
    let mut load_process =
        LoadProcess::start(&environment, environment.cores.last(), BACKEND_PORT)?;
    let server = Server {
        name: OURS.to_owned(),
        program: Program::Proxyd,
        setup: Setup::PLAIN,
    };
    count::per_request(&environment, &mut load_process, &server)
}

/// Counts that differ by too much, in either direction: improvements are committed too, so that
/// they are kept.
fn faults(guard: &Guard, found: &PerRequest) -> Vec<String> {
    let Guard {
        instructions,
        system_calls,
        tolerance,
    } = *guard;
    let counts = [
        ("instructions", instructions, found.instructions),
        ("system calls", system_calls, found.system_calls),
    ];
    let differing = counts
        .into_iter()
        .filter(|(_, known, found)| (found - known).abs() > known * tolerance);
    differing
        .map(|(what, known, found)| format!("{found:.2} {what} instead of {known:.2}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: Guard = Guard {
        instructions: 20_000.0,
        system_calls: 8.0,
        tolerance: 0.03,
    };

    fn found(instructions: f64, system_calls: f64) -> Vec<String> {
        let found = PerRequest {
            instructions,
            system_calls,
            clock_reads: 0.0,
        };
        faults(&GUARD, &found)
    }

    #[test]
    fn small_differences_are_none() {
        assert_eq!(found(20_500.0, 8.0), [""; 0]);
        assert_eq!(found(19_500.0, 8.02), [""; 0]);
    }

    #[test]
    fn increase_and_decrease_have_the_same_form() {
        assert_eq!(
            found(20_700.0, 9.0),
            [
                "20700.00 instructions instead of 20000.00",
                "9.00 system calls instead of 8.00"
            ]
        );
        assert_eq!(found(19_000.0, 8.0).len(), 1);
    }
}
