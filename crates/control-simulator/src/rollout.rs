//! Rollouts of a simulation, followed to their ends.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a simulation may stop, and says why"
)]

use crate::fault::PlantedFault;
use crate::fleet::SimulatedFleet;
use crate::operator::Operator;
use proxy_load::clock::Stopwatch;
use serde_json::{Value, json};
use std::time::Duration;

/// A rollout that takes longer than its batches may is given up after this time more.
const GRACE: Duration = Duration::from_mins(5);

/// Strategy of a rollout.
#[derive(Clone, Copy, Debug)]
pub struct RolloutPace {
    /// Nodes of one batch, in percent of the group.
    pub batch_percent: u32,
    /// Seconds that a batch runs before its gate may let it pass.
    pub soak_secs: u32,
    /// Seconds in which a batch must switch and pass.
    pub deadline_secs: u32,
}

/// Deployment of a bundle to the nodes of a group.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The group; `None` for all nodes.
    pub group: Option<usize>,
    /// The bundle.
    pub bundle: String,
    /// Its strategy.
    pub pace: RolloutPace,
    /// True if each batch has a gate.
    pub has_gate: bool,
}

/// Result of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutOutcome {
    /// `completed`, `rolled_back`, …
    pub state: String,
    /// The batch that was opened last.
    pub batch: u64,
    /// Reason for its stop.
    pub reason: String,
    /// Time from its start until its end was noticed.
    pub time: Duration,
}

impl RolloutOutcome {
    /// Returns true if it was stopped before the second batch, and its nodes were brought back.
    pub fn was_stopped(&self) -> bool {
        self.state == "rolled_back" && self.batch == 1
    }
}

impl Operator {
    /// Brings the first bundle to all nodes of a fleet that run none: there is nothing to compare it with.
    ///
    /// # Panics
    ///
    /// If not all nodes run it in the end.
    pub fn install(&self, fleet: &SimulatedFleet, bundle: &str) -> RolloutOutcome {
        let plan = Plan {
            group: None,
            bundle: bundle.to_owned(),
            pace: RolloutPace {
                batch_percent: 100,
                soak_secs: 0,
                deadline_secs: 600,
            },
            has_gate: false,
        };
        let outcome = self.roll_out(fleet, &[plan]).remove(0);
        assert_eq!(outcome.state, "completed", "{outcome:?}");
        outcome
    }

    /// Rolls out bundles with planted faults, each to a group of its own beginning with `group`, and waits
    /// until their nodes are back.
    ///
    /// # Panics
    ///
    /// If a rollout does not end, or a call fails.
    pub fn try_faults(
        &self,
        fleet: &SimulatedFleet,
        planted_faults: &[PlantedFault],
        group: usize,
        pace: RolloutPace,
    ) -> Vec<RolloutOutcome> {
        let plans = (group..).zip(planted_faults).map(|(group, planted)| {
            let bundle = self.bundle(&format!("{} on {:?}", planted.name, planted.share));
            fleet.plant(&bundle, *planted);
            Plan {
                group: Some(group),
                bundle,
                pace,
                has_gate: true,
            }
        });
        let plans: Vec<Plan> = plans.collect();
        self.roll_out(fleet, &plans)
    }

    /// Starts all rollouts, and follows each to its end.
    ///
    /// # Panics
    ///
    /// If a rollout does not end, or a call fails.
    pub fn roll_out(&self, fleet: &SimulatedFleet, plans: &[Plan]) -> Vec<RolloutOutcome> {
        let started: Vec<String> = plans.iter().map(|plan| self.start(plan)).collect();
        let clock = Stopwatch::start();
        let mut outcomes: Vec<Option<RolloutOutcome>> = vec![None; plans.len()];
        while outcomes.iter().any(Option::is_none) {
            let all = outcomes.iter_mut().zip(plans).zip(&started);
            for ((outcome, plan), id) in all.filter(|((outcome, _), _)| outcome.is_none()) {
                let found = self.get(&format!("rollouts/{id}"));
                let state = found["state"].as_str().expect("a state");
                if state != "running" {
                    // The fault had its effect: its nodes recover.
                    fleet.heal(&plan.bundle);
                }
                if matches!(state, "completed" | "rolled_back" | "paused" | "cancelled") {
                    *outcome = Some(RolloutOutcome {
                        state: state.to_owned(),
                        batch: found["batch"].as_u64().unwrap_or_default(),
                        reason: found["reason"].as_str().unwrap_or_default().to_owned(),
                        time: clock.elapsed(),
                    });
                }
                assert!(clock.elapsed() < plan.pace.longest(), "no end of {found}");
            }
        }
        outcomes.into_iter().flatten().collect()
    }

    /// Rolls a bundle out in batches of `batch_count` nodes until the batch after `batches` is opened, and ends
    /// the rollout there.
    ///
    /// # Panics
    ///
    /// If it does not reach that state, or a call fails.
    pub fn begin_rollout(&self, bundle: &str, batch_count: usize, batches: u64) {
        let body = json!({
            "bundle": bundle, "batch_count": batch_count, "soak_secs": 2, "deadline_secs": 600,
        });
        let id = self.create(&body);
        let clock = Stopwatch::start();
        loop {
            let found = self.get(&format!("rollouts/{id}"));
            assert_eq!(found["state"], "running", "{found}");
            if found["batch"].as_u64().is_some_and(|batch| batches < batch) {
                break;
            }
            assert!(clock.elapsed() < GRACE, "{found}");
        }
        self.post(&format!("rollouts/{id}/cancel"), &Value::Null);
    }

    fn start(&self, plan: &Plan) -> String {
        let Plan {
            group,
            bundle,
            pace,
            has_gate,
        } = plan;
        let mut body = json!({
            "bundle": bundle, "batch_percent": pace.batch_percent, "soak_secs": pace.soak_secs,
            "deadline_secs": pace.deadline_secs, "skip_gate": !has_gate,
        });
        if let Some(group) = group {
            body["labels"] = json!({"group": group.to_string()});
        }
        self.create(&body)
    }

    fn create(&self, body: &Value) -> String {
        let made = self.post("rollouts", body);
        let id = made["id"]
            .as_str()
            .expect("the identifier is valid")
            .to_owned();
        self.post(&format!("rollouts/{id}/start"), &Value::Null);
        id
    }
}

impl RolloutPace {
    fn longest(self) -> Duration {
        let batches = 100 / self.batch_percent.max(1) + 2;
        Duration::from_secs(u64::from(self.deadline_secs)) * batches + GRACE
    }
}
