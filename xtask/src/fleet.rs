//! `cargo xtask fleet`: a simulated fleet against one controld, or six real nodes with harmful bundles.

use clap::{Args, ValueEnum};
use serde_json::json;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::{OPTIMISED, Workspace};

/// Options of a simulation. Without `--faults`, `--planted`, `--steps`, `--heartbeats`, `--polls`, `--browsers` and
/// `--month` a good bundle is rolled out.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Nodes, each with the real client of the control plane
    #[arg(long, default_value_t = 400)]
    nodes: u32,
    /// Plants these faults, one bundle each; `help` lists them
    #[arg(long, value_delimiter = ',')]
    faults: Vec<String>,
    /// Plants this many different faults; fails if one is not stopped before the second batch
    #[arg(long)]
    planted: Option<u32>,
    /// Compares the cost of a rollout's step with that beside four times as many nodes
    #[arg(long, conflicts_with_all = ["faults", "planted", "heartbeats"])]
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
    /// Rolls bundles of this kind out to six real nodes each, and prints which guard stopped them
    #[arg(long, value_enum, conflicts_with_all = ["faults", "planted", "steps", "heartbeats"])]
    real: Option<RealBundles>,
    /// With `--real`: live tests and the gate alone, without tests of the decision and the policy on risks
    #[arg(long, requires = "real")]
    guards_of_nodes: bool,
    /// With `--real`: the first case, from 0
    #[arg(long, requires = "real", default_value_t = 0)]
    first_case: u32,
    /// With `--real`: at most so many cases
    #[arg(long, requires = "real", default_value_t = 100)]
    cases: u32,
    /// With `--real`: so many control planes with six nodes each at once
    #[arg(long, requires = "real", default_value_t = 2)]
    sites: u32,
    /// Only heartbeats, one in 30 seconds from each node; fails when answers are late
    #[arg(long, conflicts_with_all = ["faults", "planted"])]
    heartbeats: bool,
    /// Only long polls, this many at once, and the orders that wake them; two files of each process for one
    #[arg(long, conflicts_with_all = ["faults", "planted", "heartbeats"])]
    polls: Option<u32>,
    /// Only browsers that are open on a rollout, this many; fails if they cost 5 % of a core
    #[arg(long, conflicts_with_all = ["faults", "planted", "heartbeats", "polls"])]
    browsers: Option<u32>,
    /// Only the database: its size after a month of this many nodes, which takes minutes
    #[arg(long, conflicts_with_all = ["faults", "planted", "heartbeats", "polls", "browsers"])]
    month: Option<u32>,
    /// Seconds that heartbeats are sent, or browsers are open
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Database of controld
    #[arg(long, value_enum, default_value_t = Database::Sqlite)]
    database: Database,
}

/// Bundles for real nodes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RealBundles {
    Harmful,
    Harmless,
}

/// Database of controld.
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

/// Runs the chosen test, which prints latencies, processor time and memory.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), TaskError> {
    if let Some(kind) = options.real {
        return run_real(workspace, options, kind);
    }
    if let Some(nodes) = options.month {
        return run_month(workspace, nodes);
    }
    let (test, module) = match options {
        Options { polls: Some(_), .. } => ("fleet", "long_polls::"),
        Options {
            browsers: Some(_), ..
        } => ("fleet", "browsers::"),
        Options {
            heartbeats: true, ..
        } => ("fleet", "heartbeats::"),
        _ => ("simulation", ""),
    };
    let mut run = workspace.cargo(&["test", "--locked", "--package", "controld"]);
    run.args(OPTIMISED);
    run.args(["--test", test, "--", module, "--nocapture"]);
    // A log line per request would distort the measurement.
    run.env("RUST_LOG", "warn");
    if let Some(polls) = options.polls {
        run.env("CONTROLD_POLLS", polls.to_string());
    } else if let Some(browsers) = options.browsers {
        run.env(
            "CONTROLD_BROWSERS",
            format!("{browsers} {}", options.seconds),
        );
    } else if options.heartbeats {
        let (nodes, seconds) = (options.nodes, options.seconds);
        let database = options.database.name();
        run.env("CONTROLD_FLEET", format!("{nodes} {seconds} {database}"));
    } else {
        run.env("CONTROLD_SIMULATION", simulation(options));
    }
    command::run(&mut run)
}

/// Simulates a month of database content. Calls the interface without a network, with simulated
/// time.
fn run_month(workspace: &Workspace, nodes: u32) -> Result<(), TaskError> {
    let mut run = workspace.cargo(&["test", "--locked", "--package", "control-api"]);
    run.args(OPTIMISED);
    run.args(["--test", "api", "--", "month::", "--nocapture"]);
    run.env("CONTROLD_MONTH", nodes.to_string());
    command::run(&mut run)
}

/// Builds the programs, and runs the test with real nodes.
fn run_real(workspace: &Workspace, options: &Options, kind: RealBundles) -> Result<(), TaskError> {
    let build = [
        "build",
        "--locked",
        "--package",
        "proxyd",
        "--package",
        "controld",
    ];
    command::run(&mut workspace.cargo(&build))?;
    let kind = match kind {
        RealBundles::Harmful => "harmful",
        RealBundles::Harmless => "harmless",
    };
    let guards = if options.guards_of_nodes {
        "node"
    } else {
        "all"
    };
    let Options {
        first_case,
        cases,
        sites,
        ..
    } = options;
    let mut run = workspace.cargo(&["test", "--locked", "--package", "proxyd"]);
    let test = "battery::bundles_that_are_asked_for";
    run.args([
        "--test",
        "control_plane",
        "--",
        "--nocapture",
        "--exact",
        test,
    ]);
    let asked = format!("{kind} {guards} {first_case} {cases} {sites}");
    run.env("PROXYD_BATTERY", asked);
    command::run(&mut run)
}

fn simulation(options: &Options) -> String {
    let Options {
        nodes,
        faults,
        planted,
        steps,
        groups,
        interval_secs,
        batch_percent,
        soak_secs,
        deadline_secs,
        real: _,
        guards_of_nodes: _,
        first_case: _,
        cases: _,
        sites: _,
        heartbeats: _,
        polls: _,
        browsers: _,
        month: _,
        seconds: _,
        database,
    } = options;
    let simulation = json!({
        "nodes": nodes, "faults": faults, "planted": planted, "steps": steps, "groups": groups,
        "interval_secs": interval_secs, "batch_percent": batch_percent,
        "soak_secs": soak_secs, "deadline_secs": deadline_secs, "database": database.name(),
    });
    simulation.to_string()
}
