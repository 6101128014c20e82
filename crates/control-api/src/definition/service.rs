//! Routes of services.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, OrderName, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, PageOrder, ServiceFilter, SortColumn};
use control_domain::{Service, ServiceSettings};
use control_wire::{CertificateId, ProjectId, ServiceId, UpstreamId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

const DEFAULT_PRIORITY: i32 = 50;

/// A service: selects requests and the upstream they are sent to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServiceView {
    id: ServiceId,
    name: String,
    host: Option<String>,
    path_prefix: Option<String>,
    priority: i32,
    upstream: UpstreamId,
    certificate: Option<CertificateId>,
    /// Further settings of its route, with the names of the configuration.
    #[schema(value_type = Object)]
    settings: Value,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// The fields of a service that may be chosen.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServiceRequest {
    /// Unique in the project; the ID of the generated route.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// The host that it answers for, or `*.` and a domain; absent: every host.
    #[schema(min_length = 1, max_length = 253)]
    host: Option<String>,
    /// Prefix of its paths, up to 1000 bytes in UTF-8; absent for all paths.
    #[schema(min_length = 1, max_length = 1000)]
    path_prefix: Option<String>,
    /// Services with a higher priority are matched first; absent: 50.
    #[serde(default = "default_priority")]
    priority: i32,
    /// Destination of its requests: an upstream of the project.
    upstream: UpstreamId,
    /// The certificate for its host: one of the project.
    certificate: Option<CertificateId>,
    /// Further settings of the block `route` of a configuration, with its names and values: `policies`, `agents`,
    /// `retry` and more, in the form of an upstream's. At most 16 KiB.
    #[serde(default)]
    #[schema(value_type = Object, example = json!({
        "policies": {"rate-limit": {"requests-per-second": 10}, "max-body-size": "1MB"}
    }))]
    settings: Map<String, Value>,
}

fn default_priority() -> i32 {
    DEFAULT_PRIORITY
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<ServiceView> = &[
    ("created_at", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
    (
        "priority",
        SortBy::Number(SortColumn::Priority, |view| view.priority.into()),
    ),
];

/// Filters and page of services.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ServiceQuery {
    /// Only items of this name, or of names that begin so if it ends in `*`.
    name: Option<String>,
    /// Field to sort by, with `-` before it from the greatest: `created_at`, `name`, `priority`. Excludes `order`.
    #[param(pattern = "^-?(created_at|name|priority)$", example = "-priority")]
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

impl From<&Service> for ServiceView {
    fn from(service: &Service) -> Self {
        let Service {
            id,
            tenant: _,
            name,
            host,
            path_prefix,
            priority,
            upstream,
            certificate,
            settings,
            created_at,
        } = service;
        Self {
            id: *id,
            name: name.to_string(),
            host: host.clone(),
            path_prefix: path_prefix.clone(),
            priority: *priority,
            upstream: *upstream,
            certificate: *certificate,
            settings: serde_json::from_str(settings).unwrap_or_default(),
            created_at: *created_at,
        }
    }
}

impl From<ServiceRequest> for ServiceSettings {
    fn from(request: ServiceRequest) -> Self {
        let ServiceRequest {
            name,
            host,
            path_prefix,
            priority,
            upstream,
            certificate,
            settings,
        } = request;
        Self {
            name,
            host,
            path_prefix,
            priority,
            upstream,
            certificate,
            settings: Value::Object(settings).to_string(),
        }
    }
}

/// The services of a project.
#[utoipa::path(
    get, path = "/projects/{project}/services", operation_id = "list_services",
    tag = "services", params(ServiceQuery), responses((status = 200, body = List<ServiceView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<ServiceQuery>,
) -> Result<Json<List<ServiceView>>, Problem> {
    let ServiceQuery {
        name,
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
    let sort = page.sort.clone();
    let filter = ServiceFilter { name, sort };
    let found = app.services(&call, project, &filter, page.page).await?;
    let views = found.iter().map(|found| ServiceView::from(&found.value));
    let views = views.collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Creates a service.
#[utoipa::path(
    post, path = "/projects/{project}/services", operation_id = "create_service",
    tag = "services", request_body = ServiceRequest,
    responses((status = 201, body = ServiceView))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(request): Body<ServiceRequest>,
) -> Result<Resource<ServiceView>, Problem> {
    let made = app.create_service(&call, project, request.into()).await?;
    let view = ServiceView::from(&made.value);
    let path = format!("/projects/{project}/services/{}", made.value.id);
    Ok(Resource::created(made.version, view).at(&path))
}

/// One service.
#[utoipa::path(
    get, path = "/projects/{project}/services/{service}", operation_id = "get_service",
    tag = "services", responses((status = 200, body = ServiceView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, service)): Path<(ProjectId, ServiceId)>,
) -> Result<Resource<ServiceView>, Problem> {
    let found = app.service(&call, project, service).await?;
    let view = ServiceView::from(&found.value);
    Ok(Resource::found(found.version, view))
}

/// Replaces the settings of a service. Existing bundles are unchanged.
#[utoipa::path(
    put, path = "/projects/{project}/services/{service}", operation_id = "update_service",
    tag = "services", request_body = ServiceRequest,
    responses((status = 200, body = ServiceView))
)]
pub(crate) async fn update(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, service)): Path<(ProjectId, ServiceId)>,
    Body(request): Body<ServiceRequest>,
) -> Result<Resource<ServiceView>, Problem> {
    let changed = app
        .update_service(&call, project, service, request.into())
        .await?;
    let view = ServiceView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}

/// Deletes a service.
#[utoipa::path(
    delete, path = "/projects/{project}/services/{service}", operation_id = "delete_service",
    tag = "services", responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, service)): Path<(ProjectId, ServiceId)>,
) -> Result<StatusCode, Problem> {
    app.delete_service(&call, project, service).await?;
    Ok(StatusCode::NO_CONTENT)
}
