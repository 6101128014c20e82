//! Route of a project's traffic in steps of time.

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
    /// The time until now; without it, the hour.
    #[param(inline)]
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
    /// Start of the first step.
    #[schema(value_type = String, format = DateTime)]
    from: Timestamp,
    /// End of the last step.
    #[schema(value_type = String, format = DateTime)]
    to: Timestamp,
    /// Length of a step.
    step_secs: i64,
    total: TrafficFiguresView,
    /// Every step, in order.
    steps: Vec<TrafficStepView>,
    /// Most requests first: at most 50, and the rest under the empty name.
    routes: Vec<NamedTrafficView>,
    /// Most requests first: at most 50. Nodes that were deleted since are left out.
    nodes: Vec<NodeTrafficView>,
    /// By value of the label `by`, most requests first: at most 1 000. Nodes without the label are left out.
    groups: Vec<NamedTrafficView>,
}

/// One step; without `counted`, no node reported requests. Steps of five minutes have no figures of a week before.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TrafficStepView {
    /// Its start.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    counted: Option<CountedRequestsView>,
    week_before: Option<CountedRequestsView>,
}

/// Requests of a route or of the nodes with one value of the label.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NamedTrafficView {
    name: String,
    figures: TrafficFiguresView,
}

/// Requests of a node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeTrafficView {
    id: NodeId,
    name: String,
    figures: TrafficFiguresView,
}

/// Requests of the period, and of the same period a week before, if the counts reach back that far. For an hour it is
/// the whole hour in which it began.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TrafficFiguresView {
    counted: CountedRequestsView,
    week_before: Option<CountedRequestsView>,
}

/// Requests by outcome.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct CountedRequestsView {
    /// Requests that were answered.
    requests: u64,
    /// Requests with a status of 500 or more.
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

impl From<CountedRequests> for CountedRequestsView {
    fn from(counted: CountedRequests) -> Self {
        Self {
            requests: counted.requests,
            errors: counted.errors,
            p99_ms: counted.p99_ms(),
        }
    }
}

impl From<TrafficFigures> for TrafficFiguresView {
    fn from(figures: TrafficFigures) -> Self {
        let TrafficFigures {
            counted,
            week_before,
        } = figures;
        Self {
            counted: counted.into(),
            week_before: week_before.map(CountedRequestsView::from),
        }
    }
}

impl From<TrafficPoint> for TrafficStepView {
    fn from(point: TrafficPoint) -> Self {
        let TrafficPoint {
            at,
            counted,
            week_before,
        } = point;
        Self {
            at,
            counted: counted.map(CountedRequestsView::from),
            week_before: week_before.map(CountedRequestsView::from),
        }
    }
}

impl From<NamedTraffic> for NamedTrafficView {
    fn from(named: NamedTraffic) -> Self {
        let NamedTraffic { name, figures } = named;
        Self {
            name,
            figures: figures.into(),
        }
    }
}

impl From<NodeTraffic> for NodeTrafficView {
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
            steps: steps.into_iter().map(TrafficStepView::from).collect(),
            routes: routes.into_iter().map(NamedTrafficView::from).collect(),
            nodes: nodes.into_iter().map(NodeTrafficView::from).collect(),
            groups: groups.into_iter().map(NamedTrafficView::from).collect(),
        }
    }
}

/// Requests, 5xx and latency of a project over an hour, a day or a week, compared with the week before.
///
/// By route, node and label, as nodes report them by heartbeat.
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
