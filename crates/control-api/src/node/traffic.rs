//! Requests of a project by steps of time.

use crate::request::extract::{Caller, Path, Query};
use crate::response::problem::Problem;
use axum::Json;
use axum::extract::State;
use control_app::{App, NamedTraffic, NodeTraffic, ProjectTraffic, TrafficFigures, TrafficPoint};
use control_domain::{CountedRequests, TrafficPeriod};
use control_wire::{NodeId, ProjectId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// The time and the label.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrafficQuery {
    /// Absent: the hour.
    period: Option<PeriodName>,
    /// Name of a label: nodes are also counted by its values.
    by: Option<String>,
}

/// Lengths of time.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PeriodName {
    /// An hour, by five minutes.
    Hour,
    /// 24 hours, by the hour.
    Day,
    /// Seven days, by six hours.
    Week,
}

/// Requests of a project's nodes in whole steps of time. The newest step ended one minute ago or earlier.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TrafficView {
    /// Begin of the first step.
    #[schema(value_type = String, format = DateTime)]
    from: Timestamp,
    /// End of the last step.
    #[schema(value_type = String, format = DateTime)]
    to: Timestamp,
    /// Length of a step.
    step_secs: i64,
    total: FiguresView,
    /// Every step, in order.
    steps: Vec<StepView>,
    /// Most requests first: at most 50, and the rest under the empty name.
    routes: Vec<NamedFigures>,
    /// Most requests first: at most 50. Nodes that were deleted since are left out.
    nodes: Vec<NodeFigures>,
    /// By value of the label `by`, most requests first: at most 1 000. Nodes without the label are left out.
    groups: Vec<NamedFigures>,
}

/// One step.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StepView {
    /// Its begin.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Absent if no node reported requests.
    counted: Option<CountedView>,
    /// The same step a week before. Absent for steps of five minutes, which are kept for three hours.
    week_before: Option<CountedView>,
}

/// Requests of a route or of the nodes with one value of the label.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NamedFigures {
    name: String,
    figures: FiguresView,
}

/// Requests of a node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeFigures {
    id: NodeId,
    name: String,
    figures: FiguresView,
}

/// Requests of the period, and of the same period a week before.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FiguresView {
    counted: CountedView,
    /// For an hour: the whole hour in which it began. Absent if the counts do not reach back that far.
    week_before: Option<CountedView>,
}

/// Requests by outcome.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct CountedView {
    /// Requests that were answered.
    requests: u64,
    /// Those with a status of 500 or more.
    errors: u64,
    /// 99 % of the requests took at most this long; absent without requests.
    p99_ms: Option<i64>,
}

impl From<PeriodName> for TrafficPeriod {
    fn from(name: PeriodName) -> Self {
        match name {
            PeriodName::Hour => Self::Hour,
            PeriodName::Day => Self::Day,
            PeriodName::Week => Self::Week,
        }
    }
}

impl From<CountedRequests> for CountedView {
    fn from(counted: CountedRequests) -> Self {
        Self {
            requests: counted.requests,
            errors: counted.errors,
            p99_ms: counted.p99_ms(),
        }
    }
}

impl From<TrafficFigures> for FiguresView {
    fn from(figures: TrafficFigures) -> Self {
        let TrafficFigures {
            counted,
            week_before,
        } = figures;
        Self {
            counted: counted.into(),
            week_before: week_before.map(CountedView::from),
        }
    }
}

impl From<TrafficPoint> for StepView {
    fn from(point: TrafficPoint) -> Self {
        let TrafficPoint {
            at,
            counted,
            week_before,
        } = point;
        Self {
            at,
            counted: counted.map(CountedView::from),
            week_before: week_before.map(CountedView::from),
        }
    }
}

impl From<NamedTraffic> for NamedFigures {
    fn from(named: NamedTraffic) -> Self {
        let NamedTraffic { name, figures } = named;
        Self {
            name,
            figures: figures.into(),
        }
    }
}

impl From<NodeTraffic> for NodeFigures {
    fn from(node: NodeTraffic) -> Self {
        let NodeTraffic { id, name, figures } = node;
        Self {
            id,
            name,
            figures: figures.into(),
        }
    }
}

impl From<ProjectTraffic> for TrafficView {
    fn from(traffic: ProjectTraffic) -> Self {
        let ProjectTraffic {
            window,
            total,
            steps,
            routes,
            nodes,
            groups,
        } = traffic;
        Self {
            from: window.from,
            to: window.to,
            step_secs: window.step.secs(),
            total: total.into(),
            steps: steps.into_iter().map(StepView::from).collect(),
            routes: routes.into_iter().map(NamedFigures::from).collect(),
            nodes: nodes.into_iter().map(NodeFigures::from).collect(),
            groups: groups.into_iter().map(NamedFigures::from).collect(),
        }
    }
}

/// Requests, 5xx and latency of a project's nodes over an hour, a day or a week, by route, node and label, beside a week
/// before. The counts come from heartbeats.
#[utoipa::path(
    get, path = "/projects/{project}/traffic", operation_id = "get_node_traffic", tag = "nodes",
    params(TrafficQuery), responses((status = 200, body = TrafficView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<TrafficQuery>,
) -> Result<Json<TrafficView>, Problem> {
    let TrafficQuery { period, by } = query;
    let period = period.unwrap_or(PeriodName::Hour).into();
    let found = app.project_traffic(&call, project, period, by.as_deref());
    Ok(Json(found.await?.into()))
}
