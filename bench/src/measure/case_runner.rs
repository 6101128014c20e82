//! Measurement of one case, according to its plan.

use crate::cases::{Case, Field, Plan};
use crate::effort::Effort;
use crate::measure::comparison::Comparison;
use crate::measure::count;
use crate::measure::fresh;
use crate::measure::reload;
use crate::measure::rounds;
use crate::report::CaseReport;
use crate::report::results::CaseResult;
use proxy_load::clock::Stopwatch;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;

/// Measures one case, and prints the first figure of each server.
pub(crate) fn run(comparison: &mut Comparison<'_>, case: &Case) -> Result<CaseReport, TaskError> {
    let watch = Stopwatch::start();
    let held = measure(comparison, case)?;
    let seconds = watch.elapsed().as_secs_f64();
    say(format!(
        "bench: {} ({seconds:.1} s)",
        summary(&CaseResult::from(&held))
    ));
    Ok(held)
}

fn measure(comparison: &mut Comparison<'_>, case: &Case) -> Result<CaseReport, TaskError> {
    let servers = comparison.servers(case);
    let Effort { usual, fine, .. } = comparison.effort;
    let entries = match case.plan {
        Plan::Load(load) => rounds::take(comparison, &servers, &load, usual)?,
        Plan::Fine(load) => rounds::take(comparison, &servers, &load, fine)?,
        Plan::Idle(connections) => fresh::rest(comparison, &servers, connections)?,
        Plan::Start => fresh::weigh(comparison, &servers)?,
        Plan::Reload(load) => reload::repeat(comparison, &servers, &load)?,
        Plan::Count => count::all(comparison, &servers)?,
    };
    Ok(CaseReport {
        name: case.name.to_owned(),
        title: case.title.to_owned(),
        with_peers: matches!(case.field, Field::Peers(_)),
        figures: case.figures.to_vec(),
        entries,
    })
}

/// Formats the first figure of each server on one line.
fn summary(case: &CaseResult) -> String {
    let figure = case.figures.first().copied();
    let entries = case.entries.iter().map(|entry| {
        let spread = figure.and_then(|figure| Some((figure, entry.spread(figure)?)));
        match spread {
            Some((figure, spread)) => {
                let doubt = if entry.is_doubtful() { "?" } else { "" };
                format!("{} {}{doubt}", entry.name, figure.written(spread.median))
            }
            None => format!("{} –", entry.name),
        }
    });
    format!("{}: {}", case.name, entries.collect::<Vec<_>>().join(", "))
}
