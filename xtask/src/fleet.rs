//! `cargo xtask fleet`: a simulated fleet against one controld.

use clap::{Args, ValueEnum};
use serde_json::json;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// Options of a simulation. Without `--faults`, `--hurts`, `--steps` and `--heartbeats` a good bundle is rolled out.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Nodes, each with the real client of the control plane
    #[arg(long, default_value_t = 400)]
    nodes: u32,
    /// Plants these faults, one bundle each; `help` lists them
    #[arg(long, value_delimiter = ',')]
    faults: Vec<String>,
    /// Plants so many different faults; fails if one is not stopped before the second batch
    #[arg(long)]
    hurts: Option<u32>,
    /// Compares the cost of a rollout's step with that beside four times as many nodes
    #[arg(long, conflicts_with_all = ["faults", "hurts", "heartbeats"])]
    steps: bool,
    /// Groups of nodes; a planted fault has one of its own, and as many are tried at once
    #[arg(long, default_value_t = 5)]
    groups: u32,
    /// The longest time between two reports of a node; the control plane asks for 30 seconds
    #[arg(long, default_value_t = 2)]
    interval_secs: u32,
    /// Nodes of one batch, in percent
    #[arg(long, default_value_t = 25)]
    batch_percent: u32,
    /// Seconds that a batch runs before its gate may let it pass
    #[arg(long, default_value_t = 10)]
    soak_secs: u32,
    /// Seconds in which a batch must switch and pass
    #[arg(long, default_value_t = 30)]
    deadline_secs: u32,
    /// Only heartbeats, one in 30 seconds from each node; fails when answers are late
    #[arg(long, conflicts_with_all = ["faults", "hurts"])]
    heartbeats: bool,
    /// For how many seconds heartbeats are sent
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

impl Database {
    fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// Runs the test that does so; it prints latencies, processor time and memory.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), TaskError> {
    let test = if options.heartbeats {
        "fleet"
    } else {
        "simulation"
    };
    let mut run = workspace.cargo(&["test", "--locked", "--release", "--package", "controld"]);
    run.args(["--test", test, "--", "--nocapture"]);
    // A line in the log for each request is not what is measured.
    run.env("RUST_LOG", "warn");
    if options.heartbeats {
        let (nodes, seconds) = (options.nodes, options.seconds);
        let database = options.database.name();
        run.env("CONTROLD_FLEET", format!("{nodes} {seconds} {database}"));
    } else {
        run.env("CONTROLD_SIMULATION", simulation(options));
    }
    command::run(&mut run)
}

fn simulation(options: &Options) -> String {
    let Options {
        nodes,
        faults,
        hurts,
        steps,
        groups,
        interval_secs,
        batch_percent,
        soak_secs,
        deadline_secs,
        heartbeats: _,
        seconds: _,
        database,
    } = options;
    let simulation = json!({
        "nodes": nodes, "faults": faults, "hurts": hurts, "steps": steps, "groups": groups,
        "interval_secs": interval_secs, "batch_percent": batch_percent,
        "soak_secs": soak_secs, "deadline_secs": deadline_secs, "database": database.name(),
    });
    simulation.to_string()
}
