//! Routes of upstreams.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, PageOrder, SortColumn};
use control_domain::{LoadBalancing, Target, Upstream, UpstreamSettings, UpstreamTls};
use control_wire::{ProjectId, UpstreamId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Named targets.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UpstreamView {
    id: UpstreamId,
    name: String,
    load_balancing: LoadBalancing,
    targets: Vec<TargetBody>,
    /// TLS towards the targets; absent: plaintext.
    tls: Option<UpstreamTlsBody>,
    /// Further settings, with the names of the configuration.
    #[schema(value_type = Object)]
    settings: Value,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// The fields of an upstream that may be chosen.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamRequest {
    /// Unique in the project.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Selection of the next target; absent: `round_robin`.
    #[serde(default = "round_robin")]
    load_balancing: LoadBalancing,
    /// No address twice.
    #[schema(min_items = 1, max_items = 200)]
    targets: Vec<TargetBody>,
    /// TLS to the targets; absent for plaintext, on any port.
    tls: Option<UpstreamTlsBody>,
    /// Further settings of the block `upstream` of a configuration, with its names and values:
    /// `health-check`, `timeouts`, `connection-pool`, `protocol` and more. A list is several
    /// values, followed by an optional object as the block; a list of lists is a repeated setting.
    /// At most 16 KiB.
    #[serde(default)]
    #[schema(value_type = Object, example = json!({
        "health-check": {"type": ["http", {"path": "/healthz"}]}, "timeouts": {"connect-secs": 2}
    }))]
    settings: Map<String, Value>,
}

/// One address for requests.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetBody {
    /// Host and port.
    #[schema(example = "10.0.0.1:8080", max_length = 300)]
    address: String,
    /// The share of requests under every kind of load balancing; absent: 1.
    #[serde(default = "one")]
    #[schema(maximum = 10000)]
    weight: u32,
}

/// TLS towards targets.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamTlsBody {
    /// The server name to request and verify, up to 253 bytes in UTF-8; absent for the target's host.
    #[schema(min_length = 1, max_length = 253)]
    server_name: Option<String>,
}

fn round_robin() -> LoadBalancing {
    LoadBalancing::RoundRobin
}

fn one() -> u32 {
    1
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<UpstreamView> = &[
    ("created_at", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
];

/// Filters and page of upstreams.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UpstreamQuery {
    /// Only items of this name, or of names that begin so if it ends in `*`.
    name: Option<String>,
    /// Field to sort by, with `-` before it from the greatest: `created_at`, `name`.
    #[param(pattern = "^-?(created_at|name)$", example = "-name")]
    sort: Option<String>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

impl From<&Upstream> for UpstreamView {
    fn from(upstream: &Upstream) -> Self {
        let Upstream {
            id,
            tenant: _,
            name,
            load_balancing,
            targets,
            tls,
            settings,
            created_at,
        } = upstream;
        let targets = targets.iter().map(|Target { address, weight }| TargetBody {
            address: address.clone(),
            weight: *weight,
        });
        Self {
            id: *id,
            name: name.to_string(),
            load_balancing: *load_balancing,
            targets: targets.collect(),
            tls: tls.as_ref().map(|tls| UpstreamTlsBody {
                server_name: tls.server_name.clone(),
            }),
            settings: serde_json::from_str(settings).unwrap_or_default(),
            created_at: *created_at,
        }
    }
}

impl From<UpstreamRequest> for UpstreamSettings {
    fn from(request: UpstreamRequest) -> Self {
        let UpstreamRequest {
            name,
            load_balancing,
            targets,
            tls,
            settings,
        } = request;
        let target = |TargetBody { address, weight }| Target { address, weight };
        Self {
            name,
            load_balancing,
            targets: targets.into_iter().map(target).collect(),
            tls: tls.map(|UpstreamTlsBody { server_name }| UpstreamTls { server_name }),
            settings: Value::Object(settings).to_string(),
        }
    }
}

/// The upstreams of a project.
#[utoipa::path(
    get, path = "/projects/{project}/upstreams", operation_id = "list_upstreams",
    tag = "upstreams", params(UpstreamQuery), responses((status = 200, body = List<UpstreamView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<UpstreamQuery>,
) -> Result<Json<List<UpstreamView>>, Problem> {
    let UpstreamQuery {
        name,
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let filter = page.filter(name);
    let found = app.upstreams(&call, project, &filter, page.page).await?;
    let views = found.iter().map(|found| UpstreamView::from(&found.value));
    let views = views.collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Creates an upstream.
#[utoipa::path(
    post, path = "/projects/{project}/upstreams", operation_id = "create_upstream",
    tag = "upstreams", request_body = UpstreamRequest,
    responses((status = 201, body = UpstreamView))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(request): Body<UpstreamRequest>,
) -> Result<Resource<UpstreamView>, Problem> {
    let made = app.create_upstream(&call, project, request.into()).await?;
    let view = UpstreamView::from(&made.value);
    let path = format!("/projects/{project}/upstreams/{}", made.value.id);
    Ok(Resource::created(made.version, view).at(&path))
}

/// One upstream.
#[utoipa::path(
    get, path = "/projects/{project}/upstreams/{upstream}", operation_id = "get_upstream",
    tag = "upstreams", responses((status = 200, body = UpstreamView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, upstream)): Path<(ProjectId, UpstreamId)>,
) -> Result<Resource<UpstreamView>, Problem> {
    let found = app.upstream(&call, project, upstream).await?;
    let view = UpstreamView::from(&found.value);
    Ok(Resource::found(found.version, view))
}

/// Replaces the settings of an upstream. Existing bundles are unchanged.
#[utoipa::path(
    put, path = "/projects/{project}/upstreams/{upstream}", operation_id = "update_upstream",
    tag = "upstreams", request_body = UpstreamRequest,
    responses((status = 200, body = UpstreamView))
)]
pub(crate) async fn update(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, upstream)): Path<(ProjectId, UpstreamId)>,
    Body(request): Body<UpstreamRequest>,
) -> Result<Resource<UpstreamView>, Problem> {
    let changed = app
        .update_upstream(&call, project, upstream, request.into())
        .await?;
    let view = UpstreamView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}

/// Deletes an upstream that no service uses.
#[utoipa::path(
    delete, path = "/projects/{project}/upstreams/{upstream}", operation_id = "delete_upstream",
    tag = "upstreams", responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, upstream)): Path<(ProjectId, UpstreamId)>,
) -> Result<StatusCode, Problem> {
    app.delete_upstream(&call, project, upstream).await?;
    Ok(StatusCode::NO_CONTENT)
}
