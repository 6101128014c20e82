//! `cargo xtask fuzz`: coverage-guided fuzzing of every parser.

mod session;

use self::session::Session;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::{print_error, say};
use xtask_kit::workspace::Workspace;

/// Compiler flags for libFuzzer. Unlike sanitizers, they need no unstable compiler.
const COVERAGE: &[&str] = &[
    "--cfg=fuzzing",
    "-Ccodegen-units=1",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Targets to fuzz, and the time for each.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Duration of each target
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Run this target only; may be given again
    #[arg(long)]
    target: Vec<String>,
    /// Name the targets and run none
    #[arg(long)]
    list: bool,
}

/// Builds and runs the fuzz targets, and prints a table.
///
/// # Errors
/// Findings, each with its input.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), TaskError> {
    let targets = chosen(&targets(workspace)?, &options.target)?;
    if options.list {
        targets.iter().for_each(say);
        return Ok(());
    }
    let folder = workspace.target_dir()?.join("fuzz");
    let programs = build(workspace, &folder)?;
    let mut sessions = Vec::new();
    for target in &targets {
        say(format!("fuzz: {target} for {} s …", options.seconds));
        let seeds = workspace.root().join("fixtures/corpus").join(target);
        let program = workspace.command(&programs.join(target).to_string_lossy());
        let place = session::TargetFolders::make(&folder, target, seeds)?;
        sessions.push(session::run(program, target, &place, options.seconds)?);
    }
    say(Session::HEADING);
    sessions.iter().for_each(say);
    let found = sessions.iter().filter_map(Session::failure_line);
    if found.map(print_error).count() > 0 {
        return Err(TaskError::AlreadyReported);
    }
    Ok(())
}

/// Returns the names of all targets, sorted.
fn targets(workspace: &Workspace) -> Result<Vec<String>, TaskError> {
    let path = workspace.root().join("fuzz/targets");
    let fault = |source| TaskError::File {
        path: path.clone(),
        source,
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).map_err(fault)? {
        let file = entry.map_err(fault)?.path();
        names.extend(file.file_stem().and_then(OsStr::to_str).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

fn chosen(all: &[String], wanted: &[String]) -> Result<Vec<String>, TaskError> {
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(name)) {
        let all = all.join(", ");
        return Err(TaskError::Failed(format!(
            "there is no fuzz target {unknown}; there are: {all}"
        )));
    }
    let is_chosen = |name: &&String| wanted.is_empty() || wanted.contains(name);
    Ok(all.iter().filter(is_chosen).cloned().collect())
}

/// Builds the targets. Returns the folder of their programs.
fn build(workspace: &Workspace, folder: &Path) -> Result<PathBuf, TaskError> {
    let host = workspace.host()?;
    // An explicit `--target` keeps the flags from build scripts.
    let arguments = ["build", "--profile", "fuzz", "--locked", "--target"];
    let mut cargo = workspace.cargo(&arguments);
    cargo
        .args([&host, "--package", "proxy-fuzz"])
        .env("CARGO_TARGET_DIR", folder)
        .env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}"));
    command::run(&mut cargo)?;
    Ok(folder.join(host).join("fuzz"))
}
