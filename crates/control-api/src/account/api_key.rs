//! Routes of API keys.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::names::RenameRequest;
use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, PageQuery, SortBy, SortFields, last_if_absent};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{ApiKeyTenant, App, PageOrder, SortColumn, Versioned};
use control_auth::Secret;
use control_domain::{ApiKey, ApiKeyState, NewApiKey, Role, Scope, Tenant};
use control_wire::{ApiKeyId, OrgId, ProjectId, UserId, rfc3339};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// An API key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApiKeyView {
    id: ApiKeyId,
    org: OrgId,
    /// The project that the key is limited to.
    project: Option<ProjectId>,
    name: String,
    /// Scopes of the key; empty: full access.
    scopes: Vec<Scope>,
    state: ApiKeyState,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Timestamp>,
    /// The user that created the key, with or without another key; absent if it was created by a release that did
    /// not record the user. Limits for each user count all keys of a user together.
    made_by: Option<UserId>,
    /// The role of that user now: the key may do no more than its scopes and this role allow.
    maker_role: Option<Role>,
}

/// A new API key with its secret, which is shown this once.
#[derive(Serialize, ToSchema)]
pub(crate) struct CreatedApiKey {
    #[serde(flatten)]
    api_key: ApiKeyView,
    /// 32 random bytes in Base64-URL, for `Authorization: Bearer`.
    secret: String,
}

/// The fields of a new API key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewApiKeyRequest {
    /// Name for the key's purpose.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// The organization; absent: the project's, or the caller's only one.
    org: Option<OrgId>,
    /// The project to limit the key to; absent: the caller's own limit.
    project: Option<ProjectId>,
    /// Scopes of the key; empty: full access.
    #[serde(default)]
    scopes: Vec<Scope>,
    /// Expiry of the key; absent for none.
    #[serde(default, deserialize_with = "rfc3339::optional")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<ApiKeyView> = &[
    ("created_at", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
    (
        "expires_at",
        SortBy::Number(SortColumn::ExpiresAt, |view| {
            last_if_absent(view.expires_at)
        }),
    ),
];

/// Filters and page of keys.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ApiKeyQuery {
    /// The organization; absent: the project's, or the caller's only one.
    org: Option<Uuid>,
    /// Only keys that are limited to this project.
    project: Option<Uuid>,
    /// Only items of this name, or of names that begin so if it ends in `*`.
    name: Option<String>,
    /// Field to sort by, with `-` before it from the greatest: `created_at`, `name`, `expires_at`.
    #[param(pattern = "^-?(created_at|name|expires_at)$", example = "-expires_at")]
    sort: Option<String>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

impl ApiKeyView {
    fn new(key: &ApiKey, now: Timestamp) -> Self {
        let state = key.state(now);
        let ApiKey {
            id,
            tenant: Tenant { org, project },
            name,
            scopes,
            created_at,
            expires_at,
            revoked_at,
            made_by,
        } = key;
        Self {
            id: *id,
            org: *org,
            project: *project,
            name: name.to_string(),
            scopes: scopes.iter().copied().collect(),
            state,
            created_at: *created_at,
            expires_at: *expires_at,
            revoked_at: *revoked_at,
            made_by: made_by.map(|creator| creator.user),
            maker_role: made_by.and_then(|creator| creator.role),
        }
    }
}

impl CreatedApiKey {
    pub(crate) fn new(key: &Versioned<ApiKey>, secret: &Secret, now: Timestamp) -> Self {
        Self {
            api_key: ApiKeyView::new(&key.value, now),
            secret: secret.reveal().to_owned(),
        }
    }
}

/// The API keys of an organization, or those that are limited to a project.
#[utoipa::path(
    get, path = "/api-keys", operation_id = "list_api_keys", tag = "api-keys",
    params(ApiKeyQuery), responses((status = 200, body = List<ApiKeyView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Query(query): Query<ApiKeyQuery>,
) -> Result<Json<List<ApiKeyView>>, Problem> {
    let ApiKeyQuery {
        org,
        project,
        name,
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let filter = page.filter(name);
    let place = ApiKeyTenant {
        org: org.map(OrgId),
        project: project.map(ProjectId),
    };
    let found = app.api_keys(&call, place, &filter, page.page).await?;
    let views = found
        .iter()
        .map(|key| ApiKeyView::new(&key.value, call.now));
    let views = views.collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Creates an API key. A key never creates one with more rights than its own.
#[utoipa::path(
    post, path = "/api-keys", operation_id = "create_api_key", tag = "api-keys",
    request_body = NewApiKeyRequest, responses((status = 201, body = CreatedApiKey))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Body(request): Body<NewApiKeyRequest>,
) -> Result<Resource<CreatedApiKey>, Problem> {
    let NewApiKeyRequest {
        name,
        org,
        project,
        scopes,
        expires_at,
    } = request;
    let new = NewApiKey {
        name,
        scopes: scopes.into_iter().collect(),
        expires_at,
    };
    let place = ApiKeyTenant { org, project };
    let (key, secret) = app.create_api_key(&call, place, new).await?;
    let view = CreatedApiKey::new(&key, &secret, call.now);
    let path = format!("/api-keys/{}", key.value.id);
    Ok(Resource::secret(key.version, view).at(&path))
}

/// One API key.
#[utoipa::path(
    get, path = "/api-keys/{api_key}", operation_id = "get_api_key", tag = "api-keys",
    responses((status = 200, body = ApiKeyView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(api_key): Path<ApiKeyId>,
) -> Result<Resource<ApiKeyView>, Problem> {
    let found = app.api_key(&call, api_key).await?;
    let view = ApiKeyView::new(&found.value, call.now);
    Ok(Resource::composed(found.version, view))
}

/// Revokes an API key; from then on, calls with it are answered 401.
#[utoipa::path(
    post, path = "/api-keys/{api_key}/revoke", operation_id = "revoke_api_key", tag = "api-keys",
    responses((status = 200, body = ApiKeyView))
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(api_key): Path<ApiKeyId>,
) -> Result<Resource<ApiKeyView>, Problem> {
    let changed = app.revoke_api_key(&call, api_key).await?;
    let view = ApiKeyView::new(&changed.value, call.now);
    Ok(Resource::found(changed.version, view))
}

/// Deletes an API key that was revoked.
#[utoipa::path(
    delete, path = "/api-keys/{api_key}", operation_id = "delete_api_key", tag = "api-keys",
    responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(api_key): Path<ApiKeyId>,
) -> Result<StatusCode, Problem> {
    app.delete_api_key(&call, api_key).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Renames an API key.
#[utoipa::path(
    patch, path = "/api-keys/{api_key}", operation_id = "update_api_key", tag = "api-keys",
    request_body = RenameRequest, responses((status = 200, body = ApiKeyView))
)]
pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(api_key): Path<ApiKeyId>,
    Body(RenameRequest { name }): Body<RenameRequest>,
) -> Result<Resource<ApiKeyView>, Problem> {
    let changed = app.rename_api_key(&call, api_key, &name).await?;
    let view = ApiKeyView::new(&changed.value, call.now);
    Ok(Resource::found(changed.version, view))
}
