//! Runs the cases on `proxyd` and its peers: measures, prints, stores and judges the results.

use crate::cases::{Case, Plan};
use crate::machine::Machine;
use crate::measure::comparison::Comparison;
use crate::measure::{capacity, case_runner};
use crate::options::Options;
use crate::report::Report;
use crate::report::results::Results;
use crate::report::targets::{self, TargetResult, Targets, Verdict};
use crate::report::{publish, tables};
use crate::servers::environment::{Environment, LoadBuild};
use crate::servers::server::{OURS, Program};
use crate::ship;
use proxy_load::clock::Stopwatch;
use std::collections::BTreeMap;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::{print_error, say};
use xtask_kit::workspace::Workspace;

/// Measures the cases, and prints and stores the results. Judges them if `--gate` is given.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), TaskError> {
    let cases = options.cases()?;
    let targets = Targets::load(&workspace.root().join(targets::PATH))?;
    let proxyd = ship::build(workspace)?;
    let environment = Environment::prepare(workspace, LoadBuild::Release, proxyd)?;
    let watch = Stopwatch::start();
    let report = measure(workspace, &environment, options, &cases, &targets)?;
    publish::keep(&environment, &report)?;
    let results = Results::from(&report);
    let verdicts = targets.judge(&results);
    show(&results, &verdicts);
    say(format!("bench: {:.1} s", watch.elapsed().as_secs_f64()));
    if options.publish {
        publish::write(workspace.root(), &report, &targets)?;
    }
    if !options.gate {
        return Ok(());
    }
    judge(&verdicts)
}

fn measure(
    workspace: &Workspace,
    environment: &Environment,
    options: &Options,
    cases: &[Case],
    targets: &Targets,
) -> Result<Report, TaskError> {
    let effort = options.effort();
    let mut comparison = Comparison::open(environment, effort)?;
    let capacity_per_second =
        capacity::per_second(environment, &mut comparison.load_process, effort)?;
    say(format!(
        "bench: the load by itself makes {capacity_per_second:.0} requests a second"
    ));
    let mut report = Report {
        machine: Machine::describe(workspace, &environment.cores)?,
        effort,
        versions: versions(environment),
        capacity_per_second,
        cases: Vec::new(),
    };
    for case in cases {
        let held = case_runner::run(&mut comparison, case)?;
        report.cases.push(held);
    }
    if options.gate {
        decide(&mut comparison, cases, targets, &mut report)?;
    }
    for entry in report.cases.iter_mut().flat_map(|case| &mut case.entries) {
        let void = entry.rounds.iter_mut().map(|round| &mut round.void);
        for why in void.chain([&mut entry.unsupported]).flatten() {
            *why = environment.without_local_paths(why);
        }
    }
    Ok(report)
}

/// Repeats cases with a result close to the gate, on either side to avoid bias, and cases without a
/// result.
fn decide(
    comparison: &mut Comparison<'_>,
    cases: &[Case],
    targets: &Targets,
    report: &mut Report,
) -> Result<(), TaskError> {
    let verdicts = targets.judge(&Results::from(&*report));
    let undecided = verdicts.iter().filter(|verdict| verdict.is_undecided());
    let undecided: Vec<&str> = undecided.map(|verdict| verdict.case.as_str()).collect();
    for case in cases {
        if !matches!(case.plan, Plan::Load(_) | Plan::Fine(_)) || !undecided.contains(&case.name) {
            continue;
        }
        let again = case_runner::run(comparison, case)?;
        let first = report.cases.iter_mut().find(|held| held.name == case.name);
        if let Some(first) = first {
            first.extend(again);
        }
    }
    Ok(())
}

fn versions(environment: &Environment) -> BTreeMap<String, String> {
    let programs = [
        (OURS, Program::Proxyd),
        ("nginx", Program::Nginx),
        ("haproxy", Program::Haproxy),
        ("varnish", Program::Varnish),
    ];
    let named = programs.into_iter().filter_map(|(name, program)| {
        let version = program.version(&environment.proxyd)?;
        Some((name.to_owned(), version))
    });
    named.collect()
}

fn show(results: &Results, verdicts: &[Verdict]) {
    for grid in [tables::peers(results), tables::ours(results)] {
        if !grid.is_empty() {
            say(format!("\n{}", grid.plain()));
        }
    }
    let ran = |verdict: &&Verdict| verdict.standing != TargetResult::LeftOut;
    let ran: Vec<Verdict> = verdicts.iter().filter(ran).cloned().collect();
    if !ran.is_empty() {
        say(format!("\n{}", tables::targets(&ran).plain()));
    }
    say("");
    for remark in tables::remarks(results) {
        print_error(remark);
    }
}

fn judge(verdicts: &[Verdict]) -> Result<(), TaskError> {
    let failed = verdicts.iter().filter(|verdict| verdict.standing.fails());
    let failed = failed.count();
    if failed == 0 {
        say("bench: every target that was measured is met");
        return Ok(());
    }
    Err(TaskError::Failed(format!(
        "bench: {failed} of {} targets missed",
        verdicts.len()
    )))
}
