//! Rollouts: deployment of a bundle to nodes, batch by batch.
#![expect(unused_qualifications, reason = "the path macro writes them")]

pub(crate) mod view;

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, OrderName, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use crate::rollout::view::{
    GateSettings, PrometheusCondition, RolloutNodeView, RolloutSummary, RolloutView,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, Call, NodeSelection, PageOrder, RolloutFilter, SortColumn};
use control_domain::{
    BatchSize, Gate, MetricCondition, NewRollout, OnFailure, RolloutCommand, RolloutState, Strategy,
};
use control_wire::{BundleId, NodeId, ProjectId, RolloutId, rfc3339};
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

const DEFAULT_PERCENT: i64 = 10;
const DEFAULT_DEADLINE_SECS: i64 = 600;
const DEFAULT_SOAK_SECS: i64 = 60;

/// A new rollout. Its nodes are selected when it is created: by `nodes`, by `labels`, or all of the project.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRolloutRequest {
    /// The bundle for the nodes.
    bundle: BundleId,
    /// Nodes by their identifiers.
    #[schema(max_items = 1000)]
    nodes: Option<Vec<NodeId>>,
    /// Labels that a node must have, all of them.
    labels: Option<BTreeMap<String, String>>,
    /// Nodes of one batch; excludes `batch_percent`.
    #[schema(minimum = 1)]
    batch_count: Option<i64>,
    /// Nodes of one batch in percent of all, rounded up; 10 unless there is a `batch_count`.
    #[schema(minimum = 1, maximum = 100)]
    batch_percent: Option<i64>,
    /// Nodes of a batch that may be offline or late without stopping the rollout.
    #[serde(default)]
    #[schema(minimum = 0, default = 0)]
    max_unavailable: i64,
    /// Seconds in which a batch must switch and pass; absent: 600.
    #[schema(minimum = 1, maximum = 604_800)]
    deadline_secs: Option<i64>,
    /// Seconds that a batch runs before it may pass, at most the deadline; absent: 60.
    #[schema(minimum = 0, maximum = 604_800)]
    soak_secs: Option<i64>,
    /// Conditions after each batch; absent: the default gate.
    gate: Option<GateSettings>,
    /// Omits the gate: only the nodes' verdicts count. For nodes without traffic.
    #[serde(default)]
    skip_gate: bool,
    /// A further condition after each batch, on figures of a Prometheus server; also without the gate.
    prometheus: Option<PrometheusCondition>,
    /// Requires the approval of a person other than the one that starts it. The project's policy may
    /// require it too.
    #[serde(default)]
    needs_approval: bool,
    /// Reaction to a batch that does not pass; absent: `roll_back`.
    on_failure: Option<OnFailure>,
    /// No batch is opened before this time.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "rfc3339::optional")]
    not_before: Option<Timestamp>,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<RolloutSummary> = &[("created_at", SortBy::Id)];

/// Fields that the list of nodes can be sorted by.
const NODES_SORTED: SortFields<RolloutNodeView> = &[
    ("id", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
    (
        "batch",
        SortBy::Number(SortColumn::Batch, |view| view.batch),
    ),
];

/// Filters and page of rollouts.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RolloutQuery {
    /// Only rollouts in this state.
    state: Option<RolloutState>,
    /// Only rollouts of this bundle.
    bundle: Option<BundleId>,
    /// Field to sort by, with `-` before it from the greatest: `created_at`. Excludes `order`.
    #[param(pattern = "^-?(created_at)$", example = "-created_at")]
    sort: Option<String>,
    /// Order by creation; the newest first if absent.
    #[param(inline)]
    order: Option<OrderName>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Filters and page of nodes of a rollout.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RolloutNodeQuery {
    /// Only items of this name, or of names that begin so if it ends in `*`.
    name: Option<String>,
    /// Field to sort by, with `-` before it from the greatest: `id`, `name`, `batch`.
    #[param(pattern = "^-?(id|name|batch)$", example = "-batch")]
    sort: Option<String>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

impl NewRolloutRequest {
    fn read(self) -> Result<(NewRollout, NodeSelection), Problem> {
        let Self {
            bundle,
            nodes,
            labels,
            batch_count,
            batch_percent,
            max_unavailable,
            deadline_secs,
            soak_secs,
            gate,
            skip_gate,
            prometheus,
            needs_approval,
            on_failure,
            not_before,
        } = self;
        let batch = match (batch_count, batch_percent) {
            (Some(count), None) => BatchSize::Count(count),
            (None, percent) => BatchSize::Percent(percent.unwrap_or(DEFAULT_PERCENT)),
            (Some(_), Some(_)) => {
                return Err(Problem::invalid(
                    "batch_count",
                    "cannot be combined with `batch_percent`",
                ));
            }
        };
        let gate = match (gate, skip_gate) {
            (Some(_), true) => {
                return Err(Problem::invalid(
                    "gate",
                    "cannot be combined with `skip_gate`",
                ));
            }
            (None, true) => None,
            (gate, false) => Some(gate.map_or(Gate::DEFAULT, Gate::from)),
        };
        let selection = match (nodes, labels) {
            (Some(_), Some(_)) => {
                return Err(Problem::invalid(
                    "nodes",
                    "cannot be combined with `labels`",
                ));
            }
            (Some(nodes), None) => NodeSelection::Named(nodes),
            (None, labels) => NodeSelection::Labelled(labels.unwrap_or_default()),
        };
        let deadline_secs = deadline_secs.unwrap_or(DEFAULT_DEADLINE_SECS);
        let soak_secs = soak_secs.unwrap_or(DEFAULT_SOAK_SECS.min(deadline_secs));
        let strategy = Strategy {
            batch,
            max_unavailable,
            deadline_secs,
            soak_secs,
            gate,
            needs_approval,
            on_failure: on_failure.unwrap_or(OnFailure::RollBack),
        };
        let new = NewRollout {
            bundle,
            strategy,
            condition: prometheus.map(MetricCondition::from),
            labels: BTreeMap::new(),
            not_before,
        };
        Ok((new, selection))
    }
}

/// The rollouts of a project.
#[utoipa::path(
    get, path = "/projects/{project}/rollouts", operation_id = "list_rollouts", tag = "rollouts",
    params(RolloutQuery), responses((status = 200, body = List<RolloutSummary>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<RolloutQuery>,
) -> Result<Json<List<RolloutSummary>>, Problem> {
    let RolloutQuery {
        state,
        bundle,
        sort,
        order,
        limit,
        cursor,
    } = query;
    let query = PageQuery {
        sort,
        order,
        limit,
        cursor,
    };
    let page = query.page(SORTED, PageOrder::Newest)?;
    let filter = RolloutFilter { state, bundle };
    let found = app.rollouts(&call, project, &filter, page.page).await?;
    let views = found.iter().map(|found| RolloutSummary::from(&found.value));
    Ok(page.list(views.collect(), |view| view.id.0))
}

/// Plans a rollout of a signed bundle; no order is sent before its start.
#[utoipa::path(
    post, path = "/projects/{project}/rollouts", operation_id = "create_rollout",
    tag = "rollouts", request_body = NewRolloutRequest,
    responses((status = 201, body = RolloutSummary))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(request): Body<NewRolloutRequest>,
) -> Result<Resource<RolloutSummary>, Problem> {
    let (new, selection) = request.read()?;
    let made = app.create_rollout(&call, project, new, selection).await?;
    let view = RolloutSummary::from(&made.value);
    let path = format!("/projects/{project}/rollouts/{}", made.value.id);
    Ok(Resource::created(made.version, view).at(&path))
}

/// One rollout: its settings, its batches, and the state of the current batch.
#[utoipa::path(
    get, path = "/projects/{project}/rollouts/{rollout}", operation_id = "get_rollout",
    tag = "rollouts", responses((status = 200, body = RolloutView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, rollout)): Path<(ProjectId, RolloutId)>,
) -> Result<Resource<RolloutView>, Problem> {
    let found = app.rollout(&call, project, rollout).await?;
    let view = RolloutView::from(&found.value);
    let revision = view.revision();
    let resource = Resource::found(found.version, view);
    Ok(match revision {
        Some(revision) => resource.with_revision(revision),
        None => resource,
    })
}

/// Lists the nodes of a rollout with their reported progress.
#[utoipa::path(
    get, path = "/projects/{project}/rollouts/{rollout}/nodes",
    operation_id = "list_rollout_nodes", tag = "rollouts", params(RolloutNodeQuery),
    responses((status = 200, body = List<RolloutNodeView>))
)]
pub(crate) async fn nodes(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, rollout)): Path<(ProjectId, RolloutId)>,
    Query(query): Query<RolloutNodeQuery>,
) -> Result<Json<List<RolloutNodeView>>, Problem> {
    let RolloutNodeQuery {
        name,
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(NODES_SORTED, PageOrder::Oldest)?;
    let filter = page.filter(name);
    let (bundle, found) = app
        .rollout_nodes(&call, project, rollout, &filter, page.page)
        .await?;
    let views = found.into_iter();
    let views = views
        .map(|node| RolloutNodeView::new(node, bundle))
        .collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Starts a rollout, or requests approval if it or the project's policy requires one.
#[utoipa::path(
    post, path = "/projects/{project}/rollouts/{rollout}/start", operation_id = "start_rollout",
    tag = "rollouts", responses((status = 200, body = RolloutSummary))
)]
pub(crate) async fn start(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, rollout)): Path<(ProjectId, RolloutId)>,
) -> Result<Resource<RolloutSummary>, Problem> {
    command(&app, &call, project, rollout, RolloutCommand::Start).await
}

/// Approves a rollout requested by another person, by a session or any of that person's API keys.
#[utoipa::path(
    post, path = "/projects/{project}/rollouts/{rollout}/approve",
    operation_id = "approve_rollout", tag = "rollouts",
    responses((status = 200, body = RolloutSummary))
)]
pub(crate) async fn approve(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, rollout)): Path<(ProjectId, RolloutId)>,
) -> Result<Resource<RolloutSummary>, Problem> {
    command(&app, &call, project, rollout, RolloutCommand::Approve).await
}

/// Pauses a rollout: no further batch is opened, nodes keep their bundles.
#[utoipa::path(
    post, path = "/projects/{project}/rollouts/{rollout}/pause", operation_id = "pause_rollout",
    tag = "rollouts", responses((status = 200, body = RolloutSummary))
)]
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, rollout)): Path<(ProjectId, RolloutId)>,
) -> Result<Resource<RolloutSummary>, Problem> {
    command(&app, &call, project, rollout, RolloutCommand::Pause).await
}

/// Resumes a paused rollout: the interrupted batch restarts.
#[utoipa::path(
    post, path = "/projects/{project}/rollouts/{rollout}/resume", operation_id = "resume_rollout",
    tag = "rollouts", responses((status = 200, body = RolloutSummary))
)]
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, rollout)): Path<(ProjectId, RolloutId)>,
) -> Result<Resource<RolloutSummary>, Problem> {
    command(&app, &call, project, rollout, RolloutCommand::Resume).await
}

/// Ends a rollout; nodes keep their bundles.
#[utoipa::path(
    post, path = "/projects/{project}/rollouts/{rollout}/cancel", operation_id = "cancel_rollout",
    tag = "rollouts", responses((status = 200, body = RolloutSummary))
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, rollout)): Path<(ProjectId, RolloutId)>,
) -> Result<Resource<RolloutSummary>, Problem> {
    command(&app, &call, project, rollout, RolloutCommand::Cancel).await
}

/// Ends a rollout, and orders every switched node to run its former bundle.
#[utoipa::path(
    post, path = "/projects/{project}/rollouts/{rollout}/rollback",
    operation_id = "rollback_rollout", tag = "rollouts",
    responses((status = 200, body = RolloutSummary))
)]
pub(crate) async fn rollback(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, rollout)): Path<(ProjectId, RolloutId)>,
) -> Result<Resource<RolloutSummary>, Problem> {
    command(&app, &call, project, rollout, RolloutCommand::RollBack).await
}

async fn command(
    app: &App,
    call: &Call,
    project: ProjectId,
    rollout: RolloutId,
    command: RolloutCommand,
) -> Result<Resource<RolloutSummary>, Problem> {
    let changed = app.command_rollout(call, project, rollout, command).await?;
    let view = RolloutSummary::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}

/// Deletes a rollout that is planned or has ended.
#[utoipa::path(
    delete, path = "/projects/{project}/rollouts/{rollout}", operation_id = "delete_rollout",
    tag = "rollouts", responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, rollout)): Path<(ProjectId, RolloutId)>,
) -> Result<StatusCode, Problem> {
    app.delete_rollout(&call, project, rollout).await?;
    Ok(StatusCode::NO_CONTENT)
}
