//! `cargo xtask test-all`: every check a change must pass, in order, up to the first fault.

mod steps;
mod tally;

use self::steps::{Ending, STEPS, Step};
use self::tally::Tally;
use crate::clock::Stopwatch;
use crate::terminal::{complain, say};
use crate::trouble::Trouble;
use crate::workspace::Workspace;
use std::time::Duration;

/// Runs the steps; `fast` leaves out the thorough ones.
pub(crate) fn run(workspace: &Workspace, fast: bool) -> Result<(), Trouble> {
    let whole = Stopwatch::start();
    let tally = Tally::default();
    let outcome = STEPS
        .iter()
        .filter(|step| !(fast && step.thorough))
        .try_for_each(|step| perform(workspace, step, &tally));
    if let Err(trouble) = &outcome {
        complain(trouble.told());
    }
    say(format!("test-all: {} in all", seconds(whole.elapsed())));
    // CI judges by the last line of the output.
    say(&tally);
    outcome.map_err(|_| Trouble::Said)
}

fn perform(workspace: &Workspace, step: &Step, tally: &Tally) -> Result<(), Trouble> {
    say(format!("test-all: {} …", step.name));
    let watch = Stopwatch::start();
    let ending = (step.run)(workspace, tally)?;
    let time = seconds(watch.elapsed());
    match ending {
        Ending::Done => say(format!("test-all: {} done in {time}", step.name)),
        Ending::Skipped(reason) => say(format!("test-all: {} skipped: {reason}", step.name)),
    }
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
