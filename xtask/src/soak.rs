//! `cargo xtask soak`: reloads, upgrades and changed targets of a running proxy, under load.

use clap::Args;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::{OPTIMISED, Workspace};

/// Number of operations.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Reloads, spread over the processes
    #[arg(long, default_value_t = 100)]
    reloads: usize,
    /// Upgrades to a new process
    #[arg(long, default_value_t = 10)]
    upgrades: usize,
    /// Milliseconds between two of them
    #[arg(long, default_value_t = 300)]
    pause: u64,
    /// Reloads that add, rename and remove targets, some of them refused
    #[arg(long, default_value_t = 300)]
    target_reloads: usize,
    /// Build proxyd with optimisation
    #[arg(long)]
    optimised: bool,
}

/// Runs the soak tests, one after the other. Each prints its counts.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<(), TaskError> {
    let Options {
        reloads,
        upgrades,
        pause,
        target_reloads,
        optimised,
    } = options;
    let mut test = workspace.cargo(&["test", "--locked", "--package", "proxyd", "--test", "soak"]);
    if optimised {
        test.args(OPTIMISED);
    }
    test.args([
        "--",
        "--nocapture",
        "--test-threads",
        "1",
        "--skip",
        "chaos::",
    ]);
    test.env("PROXYD_SOAK", format!("{reloads} {upgrades} {pause}"));
    test.env("PROXYD_SOAK_TARGETS", format!("{target_reloads} 40"));
    command::run(&mut test)
}
