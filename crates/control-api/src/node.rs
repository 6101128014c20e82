//! Routes of nodes, for operators.
#![expect(unused_qualifications, reason = "the path macro writes them")]

pub(crate) mod drift;
pub(crate) mod enrolment_token;
pub(crate) mod session;
pub(crate) mod traffic;
pub(crate) mod view;

use crate::node::view::{NodeDetailView, NodeView, revision};
use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, OrderName, PageQuery, SortBy, SortFields, first_if_absent};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, KeyRotation, NodeCounts, NodeFilter, PageOrder, SortColumn, Versioned};
use control_domain::{LabelSelector, Node, NodeState};
use control_wire::{BundleId, NodeEvent, NodeEventId, NodeId, ProjectId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Fields that the list can be sorted by.
const SORTED: SortFields<NodeView> = &[
    ("created_at", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
    (
        "seen_at",
        SortBy::Number(SortColumn::SeenAt, |view| first_if_absent(view.seen_at)),
    ),
    (
        "version",
        SortBy::Text(SortColumn::Version, |view| {
            view.version.as_deref().unwrap_or_default()
        }),
    ),
];

/// Filters and page of nodes.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct NodeQuery {
    /// Only nodes with this label, as `name=value`.
    #[param(pattern = "^[^!=\\u0000]+=[^\\u0000]*$")]
    label: Option<String>,
    /// Only nodes in this state. Deleted nodes are not listed: `deleted` finds none.
    state: Option<NodeState>,
    /// Only nodes with labels that fulfil all of up to 16 conditions, separated by commas:
    /// `name=value`, `name!=value`, `name` (present) and `!name` (absent).
    #[param(example = "tier=edge,zone!=eu")]
    selector: Option<String>,
    /// Only nodes of this name, or of names that begin so if it ends in `*`.
    name: Option<String>,
    /// Only nodes that report this active bundle.
    bundle: Option<BundleId>,
    /// Only nodes with this version of the proxy, or one that begins so if it ends in `*`.
    version: Option<String>,
    /// Field to sort by, with `-` before it from the greatest: `created_at`, `name`, `seen_at`, `version`. Excludes
    /// `order`.
    #[param(
        pattern = "^-?(created_at|name|seen_at|version)$",
        example = "-version"
    )]
    sort: Option<String>,
    /// Order by creation; the oldest first if absent.
    #[param(inline)]
    order: Option<OrderName>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Numbers of nodes of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeStatsView {
    total: i64,
    /// Nodes that have not sent a heartbeat yet.
    enrolled: i64,
    online: i64,
    offline: i64,
    /// By reported active bundle: the 50 with the most nodes.
    active_bundles: Vec<BundleCountView>,
}

/// Number of nodes that run a bundle.
#[derive(Debug, Serialize, ToSchema)]
struct BundleCountView {
    bundle: BundleId,
    nodes: i64,
}

/// Changes of a node.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodePatch {
    /// A text sets a label, null removes it; unnamed labels are unchanged.
    #[schema(value_type = Object)]
    labels: BTreeMap<String, Option<String>>,
}

/// Approval of a waiting node.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveNodeRequest {
    /// The node gets only the labels of its token, none of the requested ones.
    #[serde(default)]
    without_labels: bool,
}

/// Rotation of a node's key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateKeyRequest {
    /// The keys before and all tokens end now; otherwise when the new key is used first.
    #[serde(default)]
    immediately: bool,
}

/// A node's new key, which is shown this once.
#[derive(Serialize, ToSchema)]
pub(crate) struct RotatedKeyView {
    node_id: NodeId,
    /// 32 random bytes in Base64-URL, for `X-Service-Node-Key`.
    node_key: String,
}

/// An event on a node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeEventView {
    id: NodeEventId,
    /// By the node's clock.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    kind: String,
    message: String,
}

/// Fields that the list of events can be sorted by.
const EVENTS_SORTED: SortFields<NodeEventView> = &[
    ("id", SortBy::Id),
    (
        "at",
        SortBy::Number(SortColumn::At, |view| view.at.as_millisecond()),
    ),
];

/// Page of the events.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct NodeEventQuery {
    /// Field to sort by, with `-` before it from the greatest: `id` (by their arrival), `at`.
    #[param(pattern = "^-?(id|at)$", example = "-at")]
    sort: Option<String>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

impl From<(NodeEventId, NodeEvent)> for NodeEventView {
    fn from((id, event): (NodeEventId, NodeEvent)) -> Self {
        let NodeEvent { at, kind, message } = event;
        Self {
            id,
            at,
            kind,
            message,
        }
    }
}

/// The nodes of a project.
#[utoipa::path(
    get, path = "/projects/{project}/nodes", operation_id = "list_nodes", tag = "nodes",
    params(NodeQuery), responses((status = 200, body = List<NodeView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<NodeQuery>,
) -> Result<Json<List<NodeView>>, Problem> {
    let NodeQuery {
        label,
        state,
        selector,
        name,
        bundle,
        version,
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
    let page = query.page(SORTED, PageOrder::Oldest)?;
    let filter = NodeFilter {
        selector: self::selector(label.as_deref(), selector.as_deref())?,
        state,
        name,
        bundle,
        version,
        sort: page.sort.clone(),
    };
    let found = app.nodes(&call, project, &filter, page.page).await?;
    let view =
        |node: &Versioned<Node>| NodeView::new(&node.value, app.heartbeat_interval, call.now);
    let views = found.iter().map(view);
    let views = views.collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Combines the conditions of both parameters.
fn selector(label: Option<&str>, selector: Option<&str>) -> Result<LabelSelector, Problem> {
    let mut all = LabelSelector::default();
    if let Some(label) = label {
        let pair = label.split_once('=');
        let pair = pair.filter(|(name, _)| !name.is_empty() && !name.contains('!'));
        let (name, value) = pair.ok_or_else(|| Problem::bad_query("label: is not name=value"))?;
        all = LabelSelector::equals(name, value);
    }
    if let Some(text) = selector {
        let parsed = LabelSelector::parse(text);
        all = all.and(parsed.map_err(|refusal| Problem::bad_query(&refusal.to_string()))?);
    }
    Ok(all)
}

/// Counts a project's nodes by state and by bundle.
#[utoipa::path(
    get, path = "/projects/{project}/nodes/stats", operation_id = "get_node_stats", tag = "nodes",
    responses((status = 200, body = NodeStatsView))
)]
pub(crate) async fn stats(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
) -> Result<Json<NodeStatsView>, Problem> {
    let NodeCounts {
        total,
        enrolled,
        online,
        active,
    } = app.count_nodes(&call, project).await?;
    let active = active.into_iter();
    Ok(Json(NodeStatsView {
        total,
        enrolled,
        online,
        offline: total - enrolled - online,
        active_bundles: active
            .map(|(bundle, nodes)| BundleCountView { bundle, nodes })
            .collect(),
    }))
}

/// One node.
#[utoipa::path(
    get, path = "/projects/{project}/nodes/{node}", operation_id = "get_node", tag = "nodes",
    responses((status = 200, body = NodeDetailView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, node)): Path<(ProjectId, NodeId)>,
) -> Result<Resource<NodeDetailView>, Problem> {
    let found = app.node(&call, project, node).await?;
    let view = NodeDetailView::new(&found.value, app.heartbeat_interval, call.now);
    let revision = revision(&found, app.heartbeat_interval, call.now);
    Ok(Resource::found(found.version, view).with_revision(revision))
}

/// Changes the labels of a node.
#[utoipa::path(
    patch, path = "/projects/{project}/nodes/{node}", operation_id = "update_node", tag = "nodes",
    request_body = NodePatch, responses((status = 200, body = NodeDetailView))
)]
pub(crate) async fn update(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, node)): Path<(ProjectId, NodeId)>,
    Body(NodePatch { labels }): Body<NodePatch>,
) -> Result<Resource<NodeDetailView>, Problem> {
    let changed = app.label_node(&call, project, node, labels).await?;
    let view = NodeDetailView::new(&changed.value, app.heartbeat_interval, call.now);
    let revision = revision(&changed, app.heartbeat_interval, call.now);
    Ok(Resource::found(changed.version, view).with_revision(revision))
}

/// Approves a waiting node, which requested labels beyond its token's.
/// Labels that grant access to private keys need the right to certificates.
#[utoipa::path(
    post, path = "/projects/{project}/nodes/{node}/approve", operation_id = "approve_node",
    tag = "nodes", request_body = ApproveNodeRequest,
    responses((status = 200, body = NodeDetailView))
)]
pub(crate) async fn approve(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, node)): Path<(ProjectId, NodeId)>,
    Body(ApproveNodeRequest { without_labels }): Body<ApproveNodeRequest>,
) -> Result<Resource<NodeDetailView>, Problem> {
    let changed = app
        .approve_node(&call, project, node, !without_labels)
        .await?;
    let view = NodeDetailView::new(&changed.value, app.heartbeat_interval, call.now);
    let revision = revision(&changed, app.heartbeat_interval, call.now);
    Ok(Resource::found(changed.version, view).with_revision(revision))
}

/// Rotates a node's key. The old one expires at the first use of the new one, or now.
#[utoipa::path(
    post, path = "/projects/{project}/nodes/{node}/rotate-key", operation_id = "rotate_node_key",
    tag = "nodes", request_body = RotateKeyRequest,
    responses((status = 201, body = RotatedKeyView))
)]
pub(crate) async fn rotate_key(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, node)): Path<(ProjectId, NodeId)>,
    Body(RotateKeyRequest { immediately }): Body<RotateKeyRequest>,
) -> Result<Resource<RotatedKeyView>, Problem> {
    let rotation = if immediately {
        KeyRotation::Immediate
    } else {
        KeyRotation::AtFirstUse
    };
    let rotated = app.rotate_node_key(&call, project, node, rotation).await?;
    let (version, key) = rotated;
    let view = RotatedKeyView {
        node_id: node,
        node_key: key.reveal().to_owned(),
    };
    Ok(Resource::secret(version, view))
}

/// Deletes a node; from then on, calls with its credentials are answered 401.
#[utoipa::path(
    delete, path = "/projects/{project}/nodes/{node}", operation_id = "delete_node", tag = "nodes",
    responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, node)): Path<(ProjectId, NodeId)>,
) -> Result<StatusCode, Problem> {
    app.delete_node(&call, project, node).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The newest 1 000 events of a node, the newest first.
#[utoipa::path(
    get, path = "/projects/{project}/nodes/{node}/events", operation_id = "list_node_events",
    tag = "nodes", params(NodeEventQuery), responses((status = 200, body = List<NodeEventView>))
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, node)): Path<(ProjectId, NodeId)>,
    Query(query): Query<NodeEventQuery>,
) -> Result<Json<List<NodeEventView>>, Problem> {
    let NodeEventQuery {
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(EVENTS_SORTED, PageOrder::Newest)?;
    let sort = page.sort.as_ref();
    let found = app
        .node_events(&call, project, node, sort, page.page)
        .await?;
    let views = found.into_iter().map(NodeEventView::from).collect();
    Ok(page.list(views, |view| view.id.0))
}
