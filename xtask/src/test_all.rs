//! `cargo xtask test-all`: all checks of a change, in order, until the first failure.

mod memory_folder;
mod steps;
mod tally;

use self::steps::{Ending, STEPS, Step};
use self::tally::Outcome;
use proxy_load::clock::Stopwatch;
use std::time::Duration;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::{print_error, say};
use xtask_kit::workspace::Workspace;

/// Runs the steps; with `fast` omits the slow ones.
pub(crate) fn run(workspace: &Workspace, fast: bool) -> Result<(), TaskError> {
    let whole = Stopwatch::start();
    let outcome = Outcome::default();
    let ended = STEPS
        .iter()
        .filter(|step| !(fast && step.thorough))
        .try_for_each(|step| perform(workspace, step, &outcome));
    if let Err(error) = &ended {
        print_error(error.message());
    }
    say(format!("test-all: {} in all", seconds(whole.elapsed())));
    // CI parses the last line of the output.
    say(&outcome);
    ended.map_err(|_| TaskError::AlreadyReported)
}

fn perform(workspace: &Workspace, step: &Step, outcome: &Outcome) -> Result<(), TaskError> {
    say(format!("test-all: {} …", step.name));
    let watch = Stopwatch::start();
    let ending = (step.run)(workspace, &outcome.tests)?;
    let time = seconds(watch.elapsed());
    match ending {
        Ending::Done => say(format!("test-all: {} done in {time}", step.name)),
        Ending::Skipped(reason) => {
            say(format!("test-all: {} skipped: {reason}", step.name));
            outcome.skip(step.name, &reason);
        }
    }
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
