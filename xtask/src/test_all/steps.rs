//! Steps of `test-all`, in order.

use super::memory_folder;
use super::tally::Tally;
use crate::program;
use crate::reference;
use crate::setup;
use crate::site;
use crate::tidy;
use std::num::NonZero;
use std::thread;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

pub(super) struct Step {
    pub(super) name: &'static str,
    /// Whether `--fast` omits the step.
    pub(super) thorough: bool,
    /// Runs the step, and adds the results of its tests to the tally.
    pub(super) run: fn(&Workspace, &Tally) -> Result<Ending, TaskError>,
}

/// Result of a step without failures.
pub(super) enum Ending {
    /// The step ran.
    Done,
    /// The step could not run on this machine, for the given reason.
    Skipped(String),
}

/// All steps, fast ones first, so that most failures appear within seconds.
pub(super) const STEPS: &[Step] = &[
    step("setup", set_up),
    step("fmt", format),
    step("tidy", tidy),
    step("clippy", lint),
    thorough("doc", document),
    step("tests", test),
    step("doctests", test_documentation),
    step("reference", check_reference),
    thorough("site", make_site),
    thorough("deny", check_dependencies),
    thorough("guard", guard_cost),
];

type Run = fn(&Workspace, &Tally) -> Result<Ending, TaskError>;

const fn step(name: &'static str, run: Run) -> Step {
    Step {
        name,
        thorough: false,
        run,
    }
}

const fn thorough(name: &'static str, run: Run) -> Step {
    Step {
        name,
        thorough: true,
        run,
    }
}

fn set_up(workspace: &Workspace, _: &Tally) -> Result<Ending, TaskError> {
    let missing = setup::install(workspace, setup::Extra::default());
    if missing.is_empty() {
        return Ok(Ending::Done);
    }
    absent(workspace, format!("missing: {}", missing.join(", ")))
}

fn format(workspace: &Workspace, _: &Tally) -> Result<Ending, TaskError> {
    command::run(&mut workspace.cargo(&["fmt", "--all", "--check"])).map(|()| Ending::Done)
}

fn tidy(workspace: &Workspace, _: &Tally) -> Result<Ending, TaskError> {
    tidy::run(workspace).map(|()| Ending::Done)
}

/// Runs the lints. Fuzz targets are checked but not built, which would take minutes: tests replay
/// their corpora, as `tidy` verifies.
fn lint(workspace: &Workspace, _: &Tally) -> Result<Ending, TaskError> {
    let mut clippy = workspace.cargo(&["clippy", "--workspace", "--all-targets", "--locked"]);
    command::run(clippy.args(["--", "-D", "warnings"])).map(|()| Ending::Done)
}

fn document(workspace: &Workspace, _: &Tally) -> Result<Ending, TaskError> {
    let mut doc = workspace.cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    command::run(doc.env("RUSTDOCFLAGS", "-D warnings")).map(|()| Ending::Done)
}

fn test(workspace: &Workspace, tally: &Tally) -> Result<Ending, TaskError> {
    let runner = if setup::has_subcommand(workspace, "nextest") {
        // More tests than cores run at once, because most of them wait for processes and timers.
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        format!("nextest run --test-threads {}", 2 * cores)
    } else {
        "test --lib --bins --tests --examples".to_owned()
    };
    let words = format!("{runner} --workspace --locked --no-fail-fast");
    let arguments: Vec<&str> = words.split(' ').collect();
    counted(workspace, &arguments, tally)
}

fn test_documentation(workspace: &Workspace, tally: &Tally) -> Result<Ending, TaskError> {
    let arguments = ["test", "--workspace", "--locked", "--no-fail-fast", "--doc"];
    counted(workspace, &arguments, tally)
}

fn counted(workspace: &Workspace, arguments: &[&str], tally: &Tally) -> Result<Ending, TaskError> {
    let mut tests = workspace.cargo(arguments);
    if let Some(folder) = memory_folder::find() {
        tests.env("TMPDIR", folder);
    }
    let status = command::watch(&mut tests, &|line| tally.read(line))?;
    command::succeeded(&tests, status).map(|()| Ending::Done)
}

fn check_reference(workspace: &Workspace, _: &Tally) -> Result<Ending, TaskError> {
    reference::run(workspace, true).map(|()| Ending::Done)
}

fn make_site(workspace: &Workspace, _: &Tally) -> Result<Ending, TaskError> {
    if !site::has_program(workspace) {
        return absent(workspace, "mkdocs is missing".to_owned());
    }
    site::run(workspace).map(|()| Ending::Done)
}

/// Checks licences and sources of dependencies. Advisories are omitted: their database needs a
/// download, and a new one would fail unchanged code.
fn check_dependencies(workspace: &Workspace, _: &Tally) -> Result<Ending, TaskError> {
    if !setup::has_subcommand(workspace, "deny") {
        return absent(workspace, "cargo-deny is missing".to_owned());
    }
    let arguments = ["deny", "--locked", "check", "bans", "licenses", "sources"];
    command::run(&mut workspace.cargo(&arguments)).map(|()| Ending::Done)
}

fn guard_cost(workspace: &Workspace, _: &Tally) -> Result<Ending, TaskError> {
    if command::find("valgrind").is_none() {
        return absent(workspace, "valgrind is missing".to_owned());
    }
    program::run(workspace, "bench", &["--guard"]).map(|()| Ending::Done)
}

fn absent(workspace: &Workspace, what: String) -> Result<Ending, TaskError> {
    if workspace.is_ci() {
        return Err(TaskError::Failed(what));
    }
    Ok(Ending::Skipped(what))
}
