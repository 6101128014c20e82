//! Routes of organizations.
#![expect(unused_qualifications, reason = "the path macro writes them")]

pub(crate) mod limits;
pub(crate) mod member;
pub(crate) mod removed_member;
pub(crate) mod security;

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, PageOrder, SortColumn};
use control_domain::Org;
use control_wire::OrgId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// An organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrgView {
    id: OrgId,
    name: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<OrgView> = &[
    ("created_at", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
];

/// Filters and page of organizations.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OrgQuery {
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

/// The fields of an organization that may be chosen.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrgRequest {
    /// Unique in the installation.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
}

impl From<&Org> for OrgView {
    fn from(org: &Org) -> Self {
        let Org {
            id,
            name,
            created_at,
        } = org;
        Self {
            id: *id,
            name: name.to_string(),
            created_at: *created_at,
        }
    }
}

/// Lists the organizations visible to the caller.
#[utoipa::path(
    get, path = "/orgs", operation_id = "list_orgs", tag = "orgs",
    params(OrgQuery), responses((status = 200, body = List<OrgView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Query(query): Query<OrgQuery>,
) -> Result<Json<List<OrgView>>, Problem> {
    let OrgQuery {
        name,
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let filter = page.filter(name);
    let found = app.orgs(&call, &filter, page.page).await?;
    let views = found.iter().map(|org| OrgView::from(&org.value)).collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Creates an organization with a signing key of its own.
#[utoipa::path(
    post, path = "/orgs", operation_id = "create_org", tag = "orgs",
    request_body = OrgRequest, responses((status = 201, body = OrgView))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Body(OrgRequest { name }): Body<OrgRequest>,
) -> Result<Resource<OrgView>, Problem> {
    let made = app.create_org(&call, &name).await?;
    let path = format!("/orgs/{}", made.value.id);
    let view = OrgView::from(&made.value);
    Ok(Resource::created(made.version, view).at(&path))
}

/// One organization.
#[utoipa::path(
    get, path = "/orgs/{org}", operation_id = "get_org", tag = "orgs",
    responses((status = 200, body = OrgView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
) -> Result<Resource<OrgView>, Problem> {
    let found = app.org(&call, org).await?;
    Ok(Resource::found(found.version, OrgView::from(&found.value)))
}

/// Renames an organization.
#[utoipa::path(
    patch, path = "/orgs/{org}", operation_id = "update_org", tag = "orgs",
    request_body = OrgRequest, responses((status = 200, body = OrgView))
)]
pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Body(OrgRequest { name }): Body<OrgRequest>,
) -> Result<Resource<OrgView>, Problem> {
    let changed = app.rename_org(&call, org, &name).await?;
    let view = OrgView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}

/// Deletes an organization that has no projects, with its members, invitations and keys.
#[utoipa::path(
    delete, path = "/orgs/{org}", operation_id = "delete_org", tag = "orgs",
    responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
) -> Result<StatusCode, Problem> {
    app.delete_org(&call, org).await?;
    Ok(StatusCode::NO_CONTENT)
}
