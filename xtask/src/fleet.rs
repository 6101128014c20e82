//! `cargo xtask fleet`: heartbeats of a simulated fleet against one controld.

use crate::command;
use crate::task_error::TaskError;
use crate::workspace::Workspace;
use clap::{Args, ValueEnum};

/// How large, and how long.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Nodes; each sends a heartbeat every 30 seconds
    #[arg(long, default_value_t = 20_000)]
    nodes: u32,
    /// For how many seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Where controld keeps its state
    #[arg(long, value_enum, default_value_t = Database::Sqlite)]
    database: Database,
}

/// Where controld keeps its state.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Database {
    Sqlite,
    Postgres,
}

/// Runs the test that does so; it prints latencies, processor time and memory.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<(), TaskError> {
    let Options {
        nodes,
        seconds,
        database,
    } = options;
    let database = match database {
        Database::Sqlite => "sqlite",
        Database::Postgres => "postgres",
    };
    let mut test = workspace.cargo(&["test", "--locked", "--release", "--package", "controld"]);
    test.args(["--test", "fleet", "--", "--nocapture"]);
    test.env("CONTROLD_FLEET", format!("{nodes} {seconds} {database}"));
    // A line in the log for each request is not what is measured.
    test.env("RUST_LOG", "warn");
    command::run(&mut test)
}
