//! `cargo xtask chaos`: faults of everything that proxyd depends on, under load.

use clap::Args;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// How long, and which faults.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Options {
    /// For how many seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Seed of requests and faults; by default another one in each run. It is printed
    #[arg(long)]
    seed: Option<u32>,
    /// Build proxyd with optimisation
    #[arg(long)]
    release: bool,
}

/// Runs the test that does so; it prints faults, outcomes and resources.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<(), TaskError> {
    let Options {
        seconds,
        seed,
        release,
    } = options;
    let seed = seed.unwrap_or_else(std::process::id);
    let mut test = workspace.cargo(&["test", "--locked", "--package", "proxyd", "--test", "soak"]);
    if release {
        test.arg("--release");
    }
    test.args(["--", "chaos::", "--nocapture"]);
    test.env("PROXYD_CHAOS", format!("{seconds} {seed}"));
    command::run(&mut test)
}
