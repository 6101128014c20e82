//! Check in `test-all`: the counted costs of common requests do not change.

use crate::measure::count::{self, PerRequest};
use crate::report::targets::{self, Guard, GuardedRequest, Targets};
use crate::servers::environment::{BACKEND_PORT, Environment, LoadBuild};
use crate::servers::load_process::LoadProcess;
use crate::servers::server::{OURS, Program, RouteKind, Server, Setup};
use crate::ship;
use std::collections::HashMap;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// Size of a POST's body.
const POST_BYTES: usize = 10 * 1024;

/// Number of repetitions if the ratio of two requests is too high. On a busy machine, requests wait
/// more often, so counts may be too high, but never too low.
const RECOUNTS: usize = 2;

/// Counts the cost of each guarded request, and compares it with the committed cost.
pub(crate) fn compare(workspace: &Workspace) -> Result<(), TaskError> {
    let targets = Targets::load(&workspace.root().join(targets::PATH))?;
    let proxyd = ship::build_guarded(workspace)?;
    let environment = Environment::prepare(workspace, LoadBuild::Debug, proxyd)?;
    let mut load_process =
        LoadProcess::start(&environment, environment.cores.last(), BACKEND_PORT)?;
    let mut all_faults = Vec::new();
    let mut instructions = HashMap::new();
    for guard in &targets.guards {
        let found = count(&environment, &mut load_process, guard.request)?;
        instructions.insert(guard.request, found.instructions);
        say(format!(
            "guard: {} costs {:.0} instructions and {:.2} system calls",
            guard.request.name(),
            found.instructions,
            found.system_calls
        ));
        all_faults.extend(faults(guard, &found));
    }
    if let (Some(&plain), Some(&recorded)) = (
        instructions.get(&GuardedRequest::Get),
        instructions.get(&GuardedRequest::RecordedGet),
    ) {
        let (mut plain, mut recorded) = (plain, recorded);
        let mut fault = recording_fault(targets.recording_ratio, recorded / plain);
        for _ in 0..RECOUNTS {
            if fault.is_none() {
                break;
            }
            let mut again = |request| count(&environment, &mut load_process, request);
            plain = plain.min(again(GuardedRequest::Get)?.instructions);
            recorded = recorded.min(again(GuardedRequest::RecordedGet)?.instructions);
            fault = recording_fault(targets.recording_ratio, recorded / plain);
        }
        all_faults.extend(fault);
    }
    if all_faults.is_empty() {
        return Ok(());
    }
    Err(TaskError::Failed(format!(
        "{}; if that is intended, write it into {}",
        all_faults.join(", "),
        targets::PATH
    )))
}

fn count(
    environment: &Environment,
    load_process: &mut LoadProcess,
    request: GuardedRequest,
) -> Result<PerRequest, TaskError> {
    let (route, body_bytes) = match request {
        GuardedRequest::Get | GuardedRequest::RecordedGet => (RouteKind::Plain, 0),
        GuardedRequest::ProtectedGet => (RouteKind::Protected, 0),
        GuardedRequest::Post => (RouteKind::Plain, POST_BYTES),
    };
    let server = Server {
        name: format!("{OURS}-{request:?}"),
        program: Program::Proxyd,
        setup: Setup {
            route,
            recording: request == GuardedRequest::RecordedGet,
            ..Setup::PLAIN
        },
    };
    count::per_request(environment, load_process, &server, body_bytes)
}

impl GuardedRequest {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "a small GET",
            Self::RecordedGet => "a small GET with a recording",
            Self::ProtectedGet => "a small GET with every protection",
            Self::Post => "a POST of 10 KiB",
        }
    }
}

/// Returns the counts that differ too much. Improvements are reported too: they must be committed,
/// so that later changes cannot undo them.
fn faults(guard: &Guard, found: &PerRequest) -> Vec<String> {
    let Guard {
        request,
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
    let request = request.name();
    differing
        .map(|(what, known, found)| {
            format!("{request} costs {found:.2} {what} instead of {known:.2}")
        })
        .collect()
}

/// Returns the fault of a recording if its `ratio` of instructions, compared with a GET without
/// recording, exceeds `bound`.
fn recording_fault(bound: f64, ratio: f64) -> Option<String> {
    (bound < ratio).then(|| {
        format!("a recording costs {ratio:.3} times the instructions, not at most {bound:.3}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: Guard = Guard {
        request: GuardedRequest::Get,
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
                "a small GET costs 20700.00 instructions instead of 20000.00",
                "a small GET costs 9.00 system calls instead of 8.00"
            ]
        );
        assert_eq!(found(19_000.0, 8.0).len(), 1);
    }

    #[test]
    fn a_recording_costs_at_most_its_share() {
        assert_eq!(recording_fault(1.02, 1.019), None);
        assert!(recording_fault(1.02, 1.03).is_some());
    }
}
