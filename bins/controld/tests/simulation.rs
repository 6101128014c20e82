//! Rollouts to simulated nodes with the real client: good bundles are completed, harmful ones
//! stopped.
//!
//! `CONTROLD_SIMULATION`, as set by `cargo xtask fleet`, is a JSON object with the fields of
//! [`Size`].
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may stop, and prints what it measured"
)]

use control_simulator::{
    FleetOptions, Measurement, Operator, Plan, PlantedFault, RolloutOutcome, RolloutPace,
    SimulatedFleet, planted_faults,
};
use control_testkit::{Database, Program};
use serde_json::Value;
use std::time::Duration;
use tempfile::TempDir;

const CONTROLD: &str = env!("CARGO_BIN_EXE_controld");
/// Faults in the small simulation: one of each kind of evidence.
const PLANTED_FAULTS: [&str; 6] = ["error", "slow", "reason", "invalid", "silent", "dead"];
/// Maximum number of nodes of a measured batch.
const MAX_STEP_BATCH: usize = 10;
/// Number of measured batches; one more is opened after them.
const STEP_BATCHES: u8 = 3;

/// Size of a simulation.
struct Size {
    nodes: usize,
    groups: usize,
    max_interval: Duration,
    pace: RolloutPace,
    database: Database,
}

impl Size {
    fn read(given: &Value) -> Self {
        let number = |name: &str| given[name].as_u64().unwrap();
        let small = |name: &str| u32::try_from(number(name)).unwrap();
        let count = |name: &str| usize::try_from(number(name)).unwrap();
        Self {
            nodes: count("nodes"),
            groups: count("groups"),
            max_interval: Duration::from_secs(number("interval_secs")),
            pace: RolloutPace {
                batch_percent: small("batch_percent"),
                soak_secs: small("soak_secs"),
                deadline_secs: small("deadline_secs"),
            },
            database: match given["database"].as_str() {
                Some("postgres") => Database::postgres(),
                _ => Database::sqlite(),
            },
        }
    }

    fn options(&self) -> FleetOptions {
        FleetOptions {
            max_interval: self.max_interval,
            ..FleetOptions::new(self.nodes, self.groups)
        }
    }
}

/// A control plane and an operator.
struct World {
    _folder: TempDir,
    _program: Program,
    operator: Operator,
}

impl World {
    fn new(database: &Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data").display().to_string();
        let arguments = ["--data-dir", &data, "--database", &database.url];
        let variables = [("RUST_LOG".to_owned(), "warn".to_owned())];
        let mut program = Program::start_with(CONTROLD, &arguments, &variables);
        let operator = Operator::set_up(&mut program);
        Self {
            _folder: folder,
            _program: program,
            operator,
        }
    }

    /// Creates a fleet that runs a good bundle.
    fn fleet(&self, size: &Size) -> SimulatedFleet {
        let measurement = Measurement::start(&self.operator);
        let fleet = SimulatedFleet::start(&self.operator, size.options());
        let usage = measurement.usage(&self.operator);
        println!("{} nodes enrolled: {usage}", size.nodes);
        self.operator
            .install(&fleet, &self.operator.bundle("first"));
        fleet
    }
}

fn named(name: &str) -> PlantedFault {
    let found = planted_faults()
        .into_iter()
        .find(|planted| planted.name == name);
    assert!(found.is_some(), "no fault {name}; there are {:?}", names());
    found.unwrap()
}

fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = planted_faults()
        .iter()
        .map(|planted| planted.name)
        .collect();
    names.dedup();
    names
}

/// Tests the faults, one per group at the same time. Returns those that were not stopped.
fn slipped(
    world: &World,
    fleet: &SimulatedFleet,
    tried: &[PlantedFault],
    pace: RolloutPace,
) -> Vec<(PlantedFault, RolloutOutcome)> {
    let mut slipped = Vec::new();
    for wave in tried.chunks(fleet.options().groups) {
        let outcomes = world.operator.try_faults(fleet, wave, 0, pace);
        for (planted, outcome) in wave.iter().zip(outcomes) {
            let verdict = if outcome.was_stopped() {
                "stopped"
            } else {
                "NOT STOPPED"
            };
            let (name, share) = (planted.name, planted.share);
            println!("{name} on {share:?}: {verdict}: {}", outcome.reason);
            if !outcome.was_stopped() {
                slipped.push((*planted, outcome));
            }
        }
    }
    slipped
}

fn roll_out_well(world: &World, fleet: &SimulatedFleet, name: &str, pace: RolloutPace) {
    let bundle = world.operator.bundle(name);
    let plan = Plan {
        group: None,
        bundle: bundle.clone(),
        pace,
        has_gate: true,
    };
    let measurement = Measurement::start(&world.operator);
    let outcome = world.operator.roll_out(fleet, &[plan]).remove(0);
    println!(
        "rollout {}: {}",
        outcome.state,
        measurement.usage(&world.operator)
    );
    assert_eq!(outcome.state, "completed", "{outcome:?}");
    assert_eq!(fleet.running(&bundle), fleet.options().nodes);
}

/// Returns the size of a batch that leaves enough nodes for all batches.
fn step_batch(nodes: usize) -> usize {
    (nodes / usize::from(STEP_BATCHES + 1)).min(MAX_STEP_BATCH)
}

/// Returns the mean duration of a step, with this number of nodes outside of the batch.
fn step_time(world: &World, bundle: &str, batch: usize) -> Duration {
    let measurement = Measurement::start(&world.operator);
    world
        .operator
        .begin_rollout(bundle, batch, STEP_BATCHES.into());
    let usage = measurement.usage(&world.operator);
    println!("{STEP_BATCHES} batches of {batch}: {usage}");
    usage.step_time
}

/// Checks that four times as many nodes outside of the batch do not double the cost of a step.
fn compare_steps(size: &Size) {
    let batch = step_batch(size.nodes);
    assert!(
        batch > 0,
        "--steps takes {} nodes or more",
        STEP_BATCHES + 1
    );
    let world = World::new(&size.database);
    let fleet = world.fleet(size);
    let few = step_time(&world, &world.operator.bundle("few"), batch);
    let more = FleetOptions {
        first: size.nodes,
        nodes: size.nodes * 3,
        ..size.options()
    };
    let beside = SimulatedFleet::start(&world.operator, more);
    world
        .operator
        .install(&beside, &world.operator.bundle("second"));
    let many = step_time(&world, &world.operator.bundle("many"), batch);
    println!(
        "a step: {few:?} with {} nodes, {many:?} with four times as many",
        size.nodes
    );
    drop(fleet);
    assert!(many < few * 2, "a step costs more with more nodes");
}

fn simulate(given: &Value) {
    let size = Size::read(given);
    if given["steps"] == true {
        return compare_steps(&size);
    }
    let world = World::new(&size.database);
    let fleet = world.fleet(&size);
    let listed = given["faults"].as_array().into_iter().flatten();
    let mut tried: Vec<PlantedFault> = listed.map(|name| named(name.as_str().unwrap())).collect();
    if let Some(count) = given["planted"].as_u64() {
        tried.extend(
            planted_faults()
                .into_iter()
                .take(usize::try_from(count).unwrap()),
        );
    }
    if tried.is_empty() {
        return roll_out_well(&world, &fleet, "good", size.pace);
    }
    let slipped = slipped(&world, &fleet, &tried, size.pace);
    println!(
        "{} of {} stopped before the second batch",
        tried.len() - slipped.len(),
        tried.len()
    );
    assert!(slipped.is_empty(), "not stopped: {slipped:#?}");
    roll_out_well(&world, &fleet, "good", size.pace);
}

#[test]
fn a_measured_rollout_has_nodes_for_every_batch_that_it_opens() {
    let opened = usize::from(STEP_BATCHES) + 1;
    for nodes in opened..200 {
        let batch = step_batch(nodes);
        assert!((1..=MAX_STEP_BATCH).contains(&batch), "{nodes}");
        assert!(batch * opened <= nodes, "{nodes}");
    }
}

#[test]
fn harmful_bundles_are_stopped_in_their_first_batch_and_good_ones_arrive() {
    if let Ok(given) = std::env::var("CONTROLD_SIMULATION") {
        return simulate(&serde_json::from_str(&given).unwrap());
    }
    let mut size = Size {
        nodes: 42,
        groups: PLANTED_FAULTS.len(),
        max_interval: Duration::from_secs(1),
        pace: RolloutPace {
            batch_percent: 50,
            // A dead node is offline after three seconds, so the soak must be longer.
            soak_secs: 4,
            deadline_secs: 8,
        },
        database: Database::sqlite(),
    };
    let world = World::new(&size.database);
    let fleet = world.fleet(&size);
    let tried = PLANTED_FAULTS.map(named);
    let slipped = slipped(&world, &fleet, &tried, size.pace);
    assert!(slipped.is_empty(), "not stopped: {slipped:#?}");
    // Time for a slow machine: a good rollout must not miss its deadline.
    size.pace.deadline_secs = 120;
    roll_out_well(&world, &fleet, "good", size.pace);
}
