//! `cargo xtask fuzz-api`: valid and invalid requests to the control plane, generated from its
//! `OpenAPI` description.

use control_testkit::{Database, Program, databases};
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// Package of the fuzzer on the Python Package Index.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// Number of API keys, used in turn because each is limited to five requests a second.
const KEYS: usize = 48;

/// Number and seed of requests.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Requests of each operation and phase
    #[arg(long, default_value_t = 50)]
    examples: u32,
    /// Repeats an earlier run
    #[arg(long)]
    seed: Option<u32>,
}

/// Runs all checks of the fuzzer, on each database.
///
/// # Errors
/// A finding, or a program that does not work.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), TaskError> {
    let fuzzer = fuzzer(workspace)?;
    let controld = build(workspace)?;
    for database in databases() {
        say(format!("fuzz-api: on {}", database.kind));
        fuzz(workspace, options, &fuzzer, &controld, &database)?;
    }
    Ok(())
}

/// Builds `controld` with the same features as the tests.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    let arguments = ["build", "--locked", "--workspace", "--bin", "controld"];
    command::run(&mut workspace.cargo(&arguments))?;
    Ok(workspace.target_dir()?.join("debug/controld"))
}

fn fuzz(
    workspace: &Workspace,
    options: &Options,
    fuzzer: &Path,
    controld: &Path,
    database: &Database,
) -> Result<(), TaskError> {
    let folder = tempfile::tempdir().map_err(|source| TaskError::System {
        action: "make a folder",
        source,
    })?;
    let place = folder.path().display().to_string();
    let state = ["--data-dir", &place, "--database", &database.url];
    let keys: Result<Vec<String>, TaskError> = (0..KEYS)
        .map(|number| key(controld, number, &state))
        .collect();
    // Each request claims a different client address, so that limits per address do not apply.
    let arguments = [&state[..], &["--trusted-proxies", "127.0.0.1/32"]].concat();
    let mut program = Program::start(&controld.to_string_lossy(), &arguments);
    let fixtures = workspace.root().join("fixtures/fuzz-api");
    let mut schemathesis = Command::new(fuzzer);
    schemathesis
        .current_dir(&folder)
        .env("CONTROLD_KEYS", keys?.join(" "))
        .env("PYTHONPATH", &fixtures)
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .arg("--config-file")
        .arg(fixtures.join("schemathesis.toml"))
        .arg("run")
        .arg(format!("{}/api/v1/openapi.json", program.base_url()))
        .args([
            "--checks",
            "all",
            "--workers",
            "2",
            "--no-color",
            "--max-examples",
        ])
        .arg(options.examples.to_string());
    if let Some(seed) = options.seed {
        schemathesis.args(["--seed", &seed.to_string()]);
    }
    command::run(&mut schemathesis)?;
    if program.client().get("/ready").status != 200 || !program.terminate().success() {
        let what = format!("controld no longer works on {}", database.kind);
        return Err(TaskError::Failed(what));
    }
    Ok(())
}

/// Creates an API key with full access. Uses the command line, which has no rate limit.
fn key(controld: &Path, number: usize, state: &[&str]) -> Result<String, TaskError> {
    let mut create = Command::new(controld);
    create
        .args(["admin", "create", "--api-key-name", "fuzz", "--email"])
        .arg(format!("admin-{number}@example.com"))
        .args(state);
    let made = create.output().map_err(|source| TaskError::Start {
        program: controld.display().to_string(),
        source,
    })?;
    let text = String::from_utf8_lossy(&made.stdout);
    let key = text.lines().find_map(|line| line.strip_prefix("api key "));
    key.map(str::to_owned)
        .ok_or_else(|| TaskError::Failed("controld made no key".to_owned()))
}

/// Returns the fuzzer's program, in its own environment below `target`.
fn fuzzer(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    let folder = workspace.target_dir()?.join("python").join(SCHEMATHESIS);
    let program = folder.join("bin/schemathesis");
    if program.is_file() {
        return Ok(program);
    }
    say(format!("fuzz-api: installing {SCHEMATHESIS}"));
    command::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut install = Command::new(folder.join("bin/pip"));
    command::run(install.args(["install", "--quiet", SCHEMATHESIS]))?;
    Ok(program)
}
