//! Routes of enrolment tokens.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::names::RenameRequest;
use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, PageOrder, SortColumn};
use control_domain::{EnrolmentToken, EnrolmentTokenState, NewEnrolmentToken, Tenant};
use control_wire::{EnrolmentTokenId, ProjectId, UserId, rfc3339};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// An enrolment token, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EnrolmentTokenView {
    id: EnrolmentTokenId,
    project: Option<ProjectId>,
    name: String,
    state: EnrolmentTokenState,
    /// Maximum number of nodes that it admits.
    max_uses: i64,
    /// Number of admitted nodes.
    uses: i64,
    /// Labels that it grants to its nodes.
    labels: BTreeMap<String, String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Timestamp>,
    /// The user that created it, with or without an API key: it ends with this user's rights. Absent if it was
    /// created by a release that did not record the user.
    made_by: Option<UserId>,
}

/// A new enrolment token with its secret, which is shown this once.
#[derive(Serialize, ToSchema)]
pub(crate) struct CreatedEnrolmentToken {
    #[serde(flatten)]
    enrolment_token: EnrolmentTokenView,
    /// 32 random bytes in Base64-URL, for `Authorization: Bearer`.
    secret: String,
}

/// The fields of a new enrolment token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewEnrolmentTokenRequest {
    /// Name for the token's purpose.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Maximum number of nodes that it admits; absent: 1.
    #[schema(minimum = 1, maximum = 100_000)]
    max_uses: Option<i64>,
    /// Labels that it grants to its nodes. A node that requests further ones waits for an approval.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Expiry, within a year; absent: in 24 hours.
    #[serde(default, deserialize_with = "rfc3339::optional")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<EnrolmentTokenView> = &[
    ("created_at", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
    (
        "expires_at",
        SortBy::Number(SortColumn::ExpiresAt, |view| {
            view.expires_at.as_millisecond()
        }),
    ),
];

/// Filters and page of enrolment tokens.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EnrolmentTokenQuery {
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

impl EnrolmentTokenView {
    fn new(token: &EnrolmentToken, now: Timestamp) -> Self {
        let state = token.state(now);
        let EnrolmentToken {
            id,
            tenant: Tenant { org: _, project },
            name,
            max_uses,
            uses,
            labels,
            created_at,
            expires_at,
            revoked_at,
            made_by,
        } = token;
        Self {
            id: *id,
            project: *project,
            name: name.to_string(),
            state,
            max_uses: *max_uses,
            uses: *uses,
            labels: labels.pairs().clone(),
            created_at: *created_at,
            expires_at: *expires_at,
            revoked_at: *revoked_at,
            made_by: made_by.map(|creator| creator.user),
        }
    }
}

/// The enrolment tokens of a project.
#[utoipa::path(
    get, path = "/projects/{project}/enrolment-tokens", operation_id = "list_enrolment_tokens",
    tag = "enrolment-tokens", params(EnrolmentTokenQuery), responses((status = 200, body = List<EnrolmentTokenView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<EnrolmentTokenQuery>,
) -> Result<Json<List<EnrolmentTokenView>>, Problem> {
    let EnrolmentTokenQuery {
        name,
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let filter = page.filter(name);
    let found = app
        .enrolment_tokens(&call, project, &filter, page.page)
        .await?;
    let views = found
        .iter()
        .map(|token| EnrolmentTokenView::new(&token.value, call.now));
    let views = views.collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Creates an enrolment token.
#[utoipa::path(
    post, path = "/projects/{project}/enrolment-tokens", operation_id = "create_enrolment_token",
    tag = "enrolment-tokens", request_body = NewEnrolmentTokenRequest,
    responses((status = 201, body = CreatedEnrolmentToken))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(request): Body<NewEnrolmentTokenRequest>,
) -> Result<Resource<CreatedEnrolmentToken>, Problem> {
    let NewEnrolmentTokenRequest {
        name,
        max_uses,
        labels,
        expires_at,
    } = request;
    let new = NewEnrolmentToken {
        name,
        max_uses,
        labels,
        expires_at,
    };
    let (token, secret) = app.create_enrolment_token(&call, project, new).await?;
    let view = CreatedEnrolmentToken {
        enrolment_token: EnrolmentTokenView::new(&token.value, call.now),
        secret: secret.reveal().to_owned(),
    };
    Ok(Resource::secret(token.version, view))
}

/// Revokes an enrolment token; it admits no node from then on.
#[utoipa::path(
    post, path = "/projects/{project}/enrolment-tokens/{enrolment_token}/revoke",
    operation_id = "revoke_enrolment_token", tag = "enrolment-tokens",
    responses((status = 200, body = EnrolmentTokenView))
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, token)): Path<(ProjectId, EnrolmentTokenId)>,
) -> Result<Resource<EnrolmentTokenView>, Problem> {
    let changed = app.revoke_enrolment_token(&call, project, token).await?;
    let view = EnrolmentTokenView::new(&changed.value, call.now);
    Ok(Resource::found(changed.version, view))
}

/// Deletes an enrolment token; it admits no node from then on.
#[utoipa::path(
    delete, path = "/projects/{project}/enrolment-tokens/{enrolment_token}",
    operation_id = "delete_enrolment_token", tag = "enrolment-tokens",
    responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, token)): Path<(ProjectId, EnrolmentTokenId)>,
) -> Result<StatusCode, Problem> {
    app.delete_enrolment_token(&call, project, token).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Renames an enrolment token.
#[utoipa::path(
    patch, path = "/projects/{project}/enrolment-tokens/{enrolment_token}",
    operation_id = "update_enrolment_token", tag = "enrolment-tokens",
    request_body = RenameRequest, responses((status = 200, body = EnrolmentTokenView))
)]
pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, token)): Path<(ProjectId, EnrolmentTokenId)>,
    Body(RenameRequest { name }): Body<RenameRequest>,
) -> Result<Resource<EnrolmentTokenView>, Problem> {
    let changed = app
        .rename_enrolment_token(&call, project, token, &name)
        .await?;
    let view = EnrolmentTokenView::new(&changed.value, call.now);
    Ok(Resource::found(changed.version, view))
}
