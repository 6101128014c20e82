//! JSON representation of nodes, for operators.

use control_app::Versioned;
use control_domain::{HeartbeatInterval, Node, NodeReport, NodeState, OrderSummary, Tenant};
use control_wire::{BundleId, NodeId, NodeStatus, ProjectId, Traffic, Verdict};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeView {
    pub(crate) id: NodeId,
    project: Option<ProjectId>,
    pub(crate) name: String,
    labels: BTreeMap<String, String>,
    /// Requested labels that the node's token does not grant. While present, the node waits for an
    /// approval and gets no orders.
    requested_labels: Option<BTreeMap<String, String>>,
    state: NodeState,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The last heartbeat.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) seen_at: Option<Timestamp>,
    /// 100 for one core.
    cpu_percent: Option<f64>,
    /// The version of the proxy.
    pub(crate) version: Option<String>,
    /// Whether a second key waits for its first use.
    key_rotation_pending: bool,
    /// Time since which two running processes alternate as this node, because a data folder was
    /// copied; both are accepted. Absent otherwise, and 15 minutes after one of them ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    duplicated_since: Option<Timestamp>,
    /// The order of the node.
    desired: Option<DesiredView>,
    /// The status that it reports; absent before the first heartbeat.
    status: Option<StatusView>,
}

/// An order of a node.
#[derive(Debug, Serialize, ToSchema)]
struct DesiredView {
    bundle: BundleId,
    /// The counter of the order.
    order: i64,
    #[schema(value_type = String, format = DateTime)]
    ordered_at: Timestamp,
}

/// A node's report of its bundle.
#[derive(Debug, Serialize, ToSchema)]
struct StatusView {
    /// The bundle of the newest order accepted by the node.
    desired: Option<BundleId>,
    /// Fetched and verified, not active yet.
    staged: Option<BundleId>,
    /// In force.
    active: Option<BundleId>,
    /// The bundle that the node starts with while the control plane is unreachable.
    last_good: Option<BundleId>,
    /// The order that the verdict answers.
    order: Option<u64>,
    verdict: Option<VerdictName>,
}

/// Result of a node's activation of a bundle.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum VerdictName {
    Accepted,
    Rejected,
}

/// A node with its complete report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeDetailView {
    #[serde(flatten)]
    node: NodeView,
    /// Reasons why the bundle of the last order is not active.
    diagnostics: Vec<String>,
    /// Counters of the node since the activation of its bundle.
    traffic: Option<Traffic>,
}

impl NodeView {
    pub(crate) fn new(node: &Node, interval: HeartbeatInterval, now: Timestamp) -> Self {
        let state = node.state(interval, now);
        let duplicated_since = node.duplicated_since(now);
        let Node {
            id,
            tenant: Tenant { org: _, project },
            name,
            labels,
            requested_labels,
            created_at,
            rotating,
            report,
            order,
        } = node;
        let report = report.as_ref();
        Self {
            id: *id,
            project: *project,
            name: name.to_string(),
            labels: labels.pairs().clone(),
            requested_labels: requested_labels
                .as_ref()
                .map(|labels| labels.pairs().clone()),
            state,
            created_at: *created_at,
            seen_at: report.map(|report| report.seen_at),
            cpu_percent: report.map(|report| report.cpu_percent),
            version: report.and_then(|report| report.version.clone()),
            key_rotation_pending: *rotating,
            duplicated_since,
            desired: order.map(DesiredView::from),
            status: report.map(|report| StatusView::from(&report.status)),
        }
    }
}

impl NodeDetailView {
    pub(crate) fn new(node: &Node, interval: HeartbeatInterval, now: Timestamp) -> Self {
        let report = node.report.as_ref();
        let diagnostics = report.map(|report| report.status.diagnostics.clone());
        Self {
            node: NodeView::new(node, interval, now),
            diagnostics: diagnostics.unwrap_or_default(),
            traffic: report.and_then(|report| report.traffic.clone()),
        }
    }
}

impl From<OrderSummary> for DesiredView {
    fn from(order: OrderSummary) -> Self {
        let OrderSummary {
            counter,
            bundle,
            made_at,
        } = order;
        Self {
            bundle,
            order: counter,
            ordered_at: made_at,
        }
    }
}

impl From<&NodeStatus> for StatusView {
    fn from(status: &NodeStatus) -> Self {
        let NodeStatus {
            desired,
            staged,
            active,
            last_good,
            order,
            verdict,
            diagnostics: _,
            altered: _, // Shown as a drift.
        } = status;
        Self {
            desired: *desired,
            staged: *staged,
            active: *active,
            last_good: *last_good,
            order: *order,
            verdict: verdict.map(|verdict| match verdict {
                Verdict::Accepted => VerdictName::Accepted,
                Verdict::Rejected => VerdictName::Rejected,
            }),
        }
    }
}

/// Suffix of the `ETag` after the version, because heartbeats, orders and time change the view
/// without a new version.
pub(crate) fn revision(
    node: &Versioned<Node>,
    interval: HeartbeatInterval,
    now: Timestamp,
) -> String {
    let node = &node.value;
    let seen = |report: &NodeReport| report.seen_at.as_millisecond();
    let seen = node.report.as_ref().map_or(0, seen);
    let order = node.order.map_or(0, |order| order.counter);
    let duplicated = match node.duplicated_since(now) {
        Some(_) => "-duplicated",
        None => "",
    };
    format!("{seen}-{order}-{}{duplicated}", node.state(interval, now))
}
