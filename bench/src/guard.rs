//! The guard of `test-all`: the counted cost of a small GET must not change, and a recording of heads costs little more.

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
        "guard: a small GET costs {:.0} instructions and {:.2} system calls; {:.3} times the instructions with a recording",
        found.plain.instructions,
        found.plain.system_calls,
        found.recording_ratio()
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

/// Counts without and with a recording of heads.
struct Found {
    plain: PerRequest,
    recorded: PerRequest,
}

impl Found {
    fn recording_ratio(&self) -> f64 {
        self.recorded.instructions / self.plain.instructions
    }
}

fn count(workspace: &Workspace) -> Result<Found, TaskError> {
    let proxyd = ship::build_guarded(workspace)?;
    let environment = Environment::prepare(workspace, LoadBuild::Debug, proxyd)?;
    let mut load_process =
        LoadProcess::start(&environment, environment.cores.last(), BACKEND_PORT)?;
    let mut counted = |recording| {
        let server = Server {
            name: OURS.to_owned(),
            program: Program::Proxyd,
            setup: Setup {
                recording,
                ..Setup::PLAIN
            },
        };
        count::per_request(&environment, &mut load_process, &server)
    };
    Ok(Found {
        plain: counted(false)?,
        recorded: counted(true)?,
    })
}

/// Counts that differ by too much, in either direction: improvements are committed too, so that
/// they are kept.
fn faults(guard: &Guard, found: &Found) -> Vec<String> {
    let Guard {
        instructions,
        system_calls,
        tolerance,
        recording_ratio,
    } = *guard;
    let (plain, ratio) = (&found.plain, found.recording_ratio());
    let counts = [
        ("instructions", instructions, plain.instructions),
        ("system calls", system_calls, plain.system_calls),
    ];
    let differing = counts
        .into_iter()
        .filter(|(_, known, found)| (found - known).abs() > known * tolerance);
    let differing =
        differing.map(|(what, known, found)| format!("{found:.2} {what} instead of {known:.2}"));
    let recorded = (recording_ratio < ratio).then(|| {
        format!("{ratio:.3} times as many instructions with a recording, not at most {recording_ratio:.3}")
    });
    differing.chain(recorded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: Guard = Guard {
        instructions: 20_000.0,
        system_calls: 8.0,
        tolerance: 0.03,
        recording_ratio: 1.02,
    };

    fn found(instructions: f64, system_calls: f64) -> Vec<String> {
        faults(&GUARD, &recorded(instructions, system_calls, 1.0))
    }

    /// Counts, with so many times the instructions where heads are recorded.
    fn recorded(instructions: f64, system_calls: f64, ratio: f64) -> Found {
        let counts = |ratio| PerRequest {
            instructions: instructions * ratio,
            system_calls,
            clock_reads: 0.0,
        };
        Found {
            plain: counts(1.0),
            recorded: counts(ratio),
        }
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

    #[test]
    fn a_recording_may_cost_its_share_and_no_more() {
        let found = |ratio| faults(&GUARD, &recorded(20_000.0, 8.0, ratio));
        assert_eq!(found(1.019), [""; 0]);
        assert_eq!(
            found(1.03),
            ["1.030 times as many instructions with a recording, not at most 1.020"]
        );
    }
}
