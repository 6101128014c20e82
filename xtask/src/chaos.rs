//! `cargo xtask chaos`: faults of all dependencies of `proxyd`, under load. With `--tenants`, one
//! hostile organization among ten of a control plane.

use clap::Args;
use std::path::PathBuf;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::{OPTIMISED, Workspace};

/// Duration and kinds of faults.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Duration in seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Seed of requests and faults; by default another one in each run. It is printed
    #[arg(long)]
    seed: Option<u32>,
    /// Ten organizations of controld, one of them hostile; runs `--seconds` without it, then as long with it
    #[arg(long, conflicts_with = "seed")]
    tenants: bool,
    /// Kills of controld under writes on each database; fails when an acknowledged one is lost
    #[arg(long, conflicts_with_all = ["seed", "tenants"])]
    kills: Option<u32>,
    /// Upgrades replicas of controld on PostgreSQL one by one under writes, from the program of an earlier release
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["seed", "tenants", "kills"])]
    upgrade_from: Option<PathBuf>,
    /// Build with optimisation
    #[arg(long)]
    optimised: bool,
}

/// Runs the chosen test, which prints faults, outcomes and resource use.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), TaskError> {
    let (package, binary, module) = match options {
        Options { kills: Some(_), .. } => ("controld", "bad_days", "that_is_killed_under_writes"),
        Options {
            upgrade_from: Some(_),
            ..
        } => ("controld", "bad_days", "replica_by_replica"),
        Options { tenants: true, .. } => ("controld", "fleet", "tenants::"),
        _ => ("proxyd", "soak", "chaos::"),
    };
    let mut test = workspace.cargo(&["test", "--locked", "--package", package, "--test", binary]);
    if options.optimised {
        test.args(OPTIMISED);
    }
    test.args(["--", module, "--nocapture"]);
    let seconds = options.seconds;
    if let Some(kills) = options.kills {
        test.env("CONTROLD_KILLS", kills.to_string());
    } else if let Some(older) = &options.upgrade_from {
        test.env("CONTROLD_OLDER", older);
    } else if options.tenants {
        test.env("CONTROLD_TENANTS", seconds.to_string());
    } else {
        let seed = options.seed.unwrap_or_else(std::process::id);
        test.env("PROXYD_CHAOS", format!("{seconds} {seed}"));
    }
    if package == "controld" {
        // A log line per request would distort the measurement.
        test.env("RUST_LOG", "warn");
    }
    command::run(&mut test)
}
