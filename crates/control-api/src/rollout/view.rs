//! JSON representation of rollouts, for operators.

use control_app::{
    CommandRecord, RolloutNode, RolloutProgress, StoredBatch, StoredFigures, StoredSide,
};
use control_domain::{
    Batch, BatchCounts, BatchSize, BatchState, Gate, MetricCondition, OnFailure, Rollout,
    RolloutState, Strategy,
};
use control_wire::{BundleId, NodeId, ProjectId, RolloutId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use utoipa::ToSchema;
use uuid::Uuid;

/// A rollout, without its batches.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RolloutSummary {
    pub(crate) id: RolloutId,
    project: Option<ProjectId>,
    bundle: BundleId,
    state: RolloutState,
    /// Reason of its stop, and the nodes left behind.
    reason: Option<String>,
    /// Its nodes when it was planned.
    nodes: i64,
    /// Nodes of one batch.
    batch_size: i64,
    /// Total number of batches.
    batch_total: i64,
    /// The batch that was opened last, from 1; absent before the first.
    batch: Option<i64>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
}

/// A rollout with its settings, its batches, and the state of the current batch.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RolloutView {
    #[serde(flatten)]
    summary: RolloutSummary,
    /// The labels by which its nodes were chosen.
    labels: BTreeMap<String, String>,
    /// Nodes of one batch, as requested.
    batch_count: Option<i64>,
    /// Nodes of one batch, in percent of the nodes.
    batch_percent: Option<i64>,
    /// Nodes of a batch that may be offline or late.
    max_unavailable: i64,
    /// Seconds in which a batch must switch and pass.
    deadline_secs: i64,
    /// Seconds that a batch runs before it may pass.
    soak_secs: i64,
    /// Conditions after each batch; absent: the nodes' verdicts alone count.
    gate: Option<GateSettings>,
    /// A further condition on figures of a Prometheus server.
    prometheus: Option<PrometheusCondition>,
    /// True if a second person must approve, by the plan or by the policy at its start.
    needs_approval: bool,
    /// Reaction to a batch that does not pass.
    on_failure: OnFailure,
    /// No batch is opened before this time.
    #[schema(value_type = Option<String>, format = DateTime)]
    not_before: Option<Timestamp>,
    /// The user or the API key that created it.
    created_by: Uuid,
    /// The user or the API key that requested approval.
    submitted_by: Option<Uuid>,
    /// The user that started it: another one approves.
    submitted_person: Option<UserId>,
    /// The batches that were opened.
    batches: Vec<BatchView>,
    /// Progress of the nodes of the current batch; absent if there is none.
    progress: Option<ProgressView>,
    /// The end of the freeze of the project's policy that keeps the next batch from being opened; absent without one.
    #[schema(value_type = Option<String>, format = DateTime)]
    held_until: Option<Timestamp>,
    /// The newest commands on it, oldest first; at most 100. Commands past the retention of the audit log are missing.
    commands: Vec<CommandView>,
}

/// A command of a user or an API key.
#[derive(Debug, Serialize, ToSchema)]
struct CommandView {
    /// `created`, `submit`, `start`, `approve`, `pause`, `resume`, `roll_back` or `cancel`.
    #[schema(example = "start")]
    event: String,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// `user` or `api_key`.
    #[schema(example = "user")]
    actor_kind: String,
    /// The user or the API key.
    actor: Uuid,
    /// Its name at that time; with an API key, the name of its creator too.
    actor_name: String,
}

/// Conditions after each batch, in comparison with nodes that were not moved yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GateSettings {
    /// Minimum number of requests on either side; fewer do not pass.
    #[schema(default = 100, minimum = 1)]
    min_requests: i64,
    /// Tolerated growth of the share of 5xx, in thousandths of all requests.
    #[schema(default = 10, minimum = 0, maximum = 1000)]
    max_error_increase_permille: i64,
    /// Tolerated 99th percentile of latency, in percent of the compared nodes'.
    #[schema(default = 150, minimum = 100, maximum = 100_000)]
    max_p99_percent: i64,
    /// Growth of that percentile that always passes, in milliseconds.
    #[schema(default = 10, minimum = 0)]
    p99_slack_ms: i64,
    /// Tolerated growth of a node's mean CPU, in percent of one core.
    #[schema(default = 50, minimum = 0)]
    max_cpu_increase_percent: i64,
    /// Tolerated growth of a route's mean latency, in percent.
    #[schema(default = 20, minimum = 0)]
    max_latency_increase_percent: i64,
    /// Number of failures of one reason that always passes, whatever the compared nodes report.
    #[schema(default = 0, minimum = 0)]
    max_new_failures: i64,
    /// Tolerated change of a route's part of all requests, in thousandths of all requests; 1000
    /// disables the check, for a bundle that moves requests to other services on purpose. A renamed route is compared with
    /// the former one.
    #[schema(default = 50, minimum = 0, maximum = 1000)]
    max_mix_shift_permille: i64,
}

/// A condition on figures of a Prometheus server, or of another one with its HTTP API. It is
/// queried every 10 seconds from the switch of a batch on; a batch passes if the newest answer
/// does. A missing answer or sample does not pass.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrometheusCondition {
    /// Address of the server, to which `/api/v1/query` is appended: `https`, and no private address, unless the
    /// installation allows those.
    #[schema(max_length = 2000, example = "https://prometheus.example.com")]
    url: String,
    /// The query in `PromQL`: a number, or a vector of which each sample has to pass.
    #[schema(
        min_length = 1,
        max_length = 2000,
        example = "sum(rate(orders_failed_total[1m]))"
    )]
    query: String,
    /// Minimum value that passes.
    min: Option<f64>,
    /// Maximum value that passes; `min`, `max` or both are required.
    max: Option<f64>,
}

/// Nodes that are switched together.
#[derive(Debug, Serialize, ToSchema)]
struct BatchView {
    /// Counted from 1.
    number: i64,
    state: BatchState,
    #[schema(value_type = String, format = DateTime)]
    opened_at: Timestamp,
    /// Time when its nodes ran the bundle.
    #[schema(value_type = Option<String>, format = DateTime)]
    switched_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
    /// Its nodes when it ended.
    nodes: Option<i64>,
    /// Nodes that ran the bundle then.
    ready: Option<i64>,
    /// The gate's figures then.
    figures: Option<FiguresView>,
}

/// Reported progress of a batch's nodes.
#[derive(Debug, Serialize, ToSchema)]
struct ProgressView {
    nodes: i64,
    /// Nodes without the order yet.
    unordered: i64,
    /// Nodes that are online and run the bundle.
    ready: i64,
    /// Of these, nodes with a report that counts for passing: since the switch, and within the last
    /// heartbeat interval of the soak.
    reported: i64,
    /// Nodes that are not online.
    offline: i64,
    /// Reason that the batch has not passed yet, as a noun; null if its next step is due.
    waits_for: Option<String>,
    /// The gate's present figures.
    figures: Option<FiguresView>,
}

/// The two sides of a gate.
#[derive(Debug, Serialize, ToSchema)]
struct FiguresView {
    /// The nodes of the batch since they switched.
    batch: SideView,
    /// Nodes that were not moved yet, since the batch was opened; for the last batch, itself before.
    rest: SideView,
    /// The verdict in one sentence, with the routes without a verdict.
    verdict: Option<String>,
}

/// Sums of the nodes' reports.
#[derive(Debug, Serialize, ToSchema)]
struct SideView {
    nodes: i64,
    requests: u64,
    /// The trimmed mean of 5xx in thousandths of a node's requests.
    error_permille: i64,
    /// The trimmed mean of the nodes' 99th percentiles of latency; absent without requests.
    p99_ms: Option<i64>,
    /// The mean of a node; 100 is one core.
    cpu_percent: Option<f64>,
}

/// A node of a rollout, with its reported progress.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RolloutNodeView {
    pub(crate) id: NodeId,
    pub(crate) name: String,
    /// Counted from 1.
    pub(crate) batch: i64,
    state: RolloutNodeState,
    /// The previous bundle.
    previous: Option<BundleId>,
    /// The bundle that it reports.
    active: Option<BundleId>,
    #[schema(value_type = Option<String>, format = DateTime)]
    seen_at: Option<Timestamp>,
}

/// Progress of a node in a rollout.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RolloutNodeState {
    /// Its batch was not opened yet.
    Waiting,
    /// It was ordered, and has not answered that order.
    Ordered,
    /// It runs the bundle.
    Switched,
    /// It rejected the bundle.
    Rejected,
    /// It was ordered to go back.
    Reverting,
    /// It runs its former bundle again.
    Reverted,
    /// It has no former bundle.
    LeftBehind,
}

impl From<&Rollout> for RolloutSummary {
    fn from(rollout: &Rollout) -> Self {
        Self {
            id: rollout.id,
            project: rollout.tenant.project,
            bundle: rollout.bundle,
            state: rollout.state,
            reason: rollout.reason.clone(),
            nodes: rollout.nodes,
            batch_size: rollout.batch_size,
            batch_total: rollout.batches(),
            batch: rollout.batch.as_ref().map(|batch| batch.number),
            created_at: rollout.created_at,
            started_at: rollout.started_at,
            ended_at: rollout.ended_at,
        }
    }
}

impl From<&RolloutProgress> for RolloutView {
    fn from(progress: &RolloutProgress) -> Self {
        let RolloutProgress {
            rollout,
            batches,
            counts,
            figures,
            waits_for,
            held_until,
            commands,
            stops: _, // For pages.
        } = progress;
        let Strategy {
            batch,
            max_unavailable,
            deadline_secs,
            soak_secs,
            gate,
            needs_approval,
            on_failure,
        } = rollout.strategy;
        let (batch_count, batch_percent) = match batch {
            BatchSize::Count(count) => (Some(count), None),
            BatchSize::Percent(percent) => (None, Some(percent)),
        };
        Self {
            summary: RolloutSummary::from(rollout),
            labels: rollout.labels.clone(),
            batch_count,
            batch_percent,
            max_unavailable,
            deadline_secs,
            soak_secs,
            gate: gate.map(GateSettings::from),
            prometheus: rollout.condition.clone().map(PrometheusCondition::from),
            needs_approval,
            on_failure,
            not_before: rollout.not_before,
            created_by: rollout.created_by,
            submitted_by: rollout.submitted_by,
            submitted_person: rollout.submitted_person,
            batches: batches.iter().map(BatchView::from).collect(),
            progress: counts
                .map(|counts| ProgressView::new(counts, figures.clone(), waits_for.clone())),
            held_until: *held_until,
            commands: commands.iter().map(CommandView::from).collect(),
        }
    }
}

impl From<&CommandRecord> for CommandView {
    fn from(record: &CommandRecord) -> Self {
        let CommandRecord {
            event,
            at,
            actor_kind,
            actor,
            actor_name,
        } = record.clone();
        Self {
            event,
            at,
            actor_kind,
            actor,
            actor_name,
        }
    }
}

impl RolloutView {
    /// Hash of the batch's progress and the freeze, 16 hexadecimal digits: heartbeats and time
    /// change both without a new version. `None` if neither is present.
    pub(crate) fn revision(&self) -> Option<String> {
        if self.progress.is_none() && self.held_until.is_none() {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        let both = (&self.progress, &self.held_until);
        serde_json::to_vec(&both).ok()?.hash(&mut hasher);
        Some(format!("{:016x}", hasher.finish()))
    }
}

impl From<Gate> for GateSettings {
    fn from(gate: Gate) -> Self {
        let Gate {
            min_requests,
            max_error_increase_permille,
            max_p99_percent,
            p99_slack_ms,
            max_cpu_increase_percent,
            max_latency_increase_percent,
            max_new_failures,
            max_mix_shift_permille,
        } = gate;
        Self {
            min_requests,
            max_error_increase_permille,
            max_p99_percent,
            p99_slack_ms,
            max_cpu_increase_percent,
            max_latency_increase_percent,
            max_new_failures,
            max_mix_shift_permille,
        }
    }
}

impl From<MetricCondition> for PrometheusCondition {
    fn from(condition: MetricCondition) -> Self {
        let MetricCondition {
            url,
            query,
            min,
            max,
        } = condition;
        Self {
            url,
            query,
            min,
            max,
        }
    }
}

impl From<PrometheusCondition> for MetricCondition {
    fn from(condition: PrometheusCondition) -> Self {
        let PrometheusCondition {
            url,
            query,
            min,
            max,
        } = condition;
        Self {
            url,
            query,
            min,
            max,
        }
    }
}

impl Default for GateSettings {
    fn default() -> Self {
        Self::from(Gate::DEFAULT)
    }
}

impl From<GateSettings> for Gate {
    fn from(settings: GateSettings) -> Self {
        let GateSettings {
            min_requests,
            max_error_increase_permille,
            max_p99_percent,
            p99_slack_ms,
            max_latency_increase_percent,
            max_cpu_increase_percent,
            max_new_failures,
            max_mix_shift_permille,
        } = settings;
        Self {
            min_requests,
            max_error_increase_permille,
            max_p99_percent,
            p99_slack_ms,
            max_latency_increase_percent,
            max_cpu_increase_percent,
            max_new_failures,
            max_mix_shift_permille,
        }
    }
}

impl From<&StoredBatch> for BatchView {
    fn from(stored: &StoredBatch) -> Self {
        let StoredBatch {
            batch:
                Batch {
                    number,
                    state,
                    opened_at,
                    switched_at,
                    ended_at,
                },
            nodes,
            ready,
            figures,
        } = stored;
        let figures = figures.as_deref();
        let figures = figures.and_then(|text| serde_json::from_str::<StoredFigures>(text).ok());
        Self {
            number: *number,
            state: *state,
            opened_at: *opened_at,
            switched_at: *switched_at,
            ended_at: *ended_at,
            nodes: *nodes,
            ready: *ready,
            figures: figures.map(FiguresView::from),
        }
    }
}

impl ProgressView {
    fn new(counts: BatchCounts, figures: Option<StoredFigures>, waits_for: Option<String>) -> Self {
        let BatchCounts {
            nodes,
            unordered,
            ready,
            reported,
            offline,
        } = counts;
        Self {
            nodes,
            unordered,
            ready,
            reported,
            offline,
            waits_for,
            figures: figures.map(FiguresView::from),
        }
    }
}

impl From<StoredFigures> for FiguresView {
    fn from(figures: StoredFigures) -> Self {
        let StoredFigures {
            batch,
            rest,
            earlier: _, // For pages.
            verdict,
        } = figures;
        Self {
            batch: SideView::from(batch),
            rest: SideView::from(rest),
            verdict,
        }
    }
}

impl From<StoredSide> for SideView {
    fn from(side: StoredSide) -> Self {
        let StoredSide {
            nodes,
            requests,
            error_permille,
            p99_ms,
            cpu_percent,
        } = side;
        Self {
            nodes,
            requests,
            error_permille,
            p99_ms,
            cpu_percent,
        }
    }
}

impl RolloutNodeView {
    pub(crate) fn new(found: RolloutNode, bundle: BundleId) -> Self {
        let state = RolloutNodeState::derive(&found, bundle);
        let RolloutNode {
            node,
            name,
            batch,
            previous,
            order: _,
            back_order: _,
            active,
            verdict_order: _,
            accepted: _,
            seen_at,
        } = found;
        Self {
            id: node,
            name,
            batch,
            state,
            previous,
            active,
            seen_at: Some(seen_at).filter(|time| *time != Timestamp::UNIX_EPOCH),
        }
    }
}

impl RolloutNodeState {
    fn derive(node: &RolloutNode, bundle: BundleId) -> Self {
        let accepted = |order: i64| {
            let newest = node.verdict_order.filter(|answered| order <= *answered);
            newest.and(node.accepted)
        };
        match (node.order, node.back_order) {
            (_, Some(0)) => Self::LeftBehind,
            (_, Some(back)) if accepted(back) == Some(true) => Self::Reverted,
            (_, Some(_)) => Self::Reverting,
            (None, None) => Self::Waiting,
            (Some(order), None) => match accepted(order) {
                Some(true) if node.active == Some(bundle) => Self::Switched,
                Some(false) => Self::Rejected,
                Some(true) | None => Self::Ordered,
            },
        }
    }
}
