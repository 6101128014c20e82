//! Routes of members' roles in single projects.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, PageOrder, SortColumn};
use control_domain::{ProjectRole, Role};
use control_wire::{ProjectId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A member's role in one project; the higher one of it and of the organization's counts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProjectRoleView {
    project: ProjectId,
    user: UserId,
    role: Role,
    /// Time of granting.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<ProjectRoleView> = &[
    ("user", SortBy::Id),
    (
        "created_at",
        SortBy::Number(SortColumn::CreatedAt, |view| {
            view.created_at.as_millisecond()
        }),
    ),
];

/// Page of the roles.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ProjectRoleQuery {
    /// Field to sort by, with `-` before it from the greatest: `user` (by the creation of the user), `created_at`.
    #[param(pattern = "^-?(user|created_at)$", example = "-created_at")]
    sort: Option<String>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The role to give: `operator` or `admin`, as every member reads.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectRoleRequest {
    role: Role,
}

impl From<ProjectRole> for ProjectRoleView {
    fn from(given: ProjectRole) -> Self {
        let ProjectRole {
            org: _,
            project,
            user,
            role,
            created_at,
        } = given;
        Self {
            project,
            user,
            role,
            created_at,
        }
    }
}

/// The members with a role of their own in the project.
#[utoipa::path(
    get, path = "/projects/{project}/roles", operation_id = "list_project_roles", tag = "projects",
    params(ProjectRoleQuery), responses((status = 200, body = List<ProjectRoleView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<ProjectRoleQuery>,
) -> Result<Json<List<ProjectRoleView>>, Problem> {
    let ProjectRoleQuery {
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let sort = page.sort.as_ref();
    let found = app.project_roles(&call, project, sort, page.page).await?;
    let views = found.iter().map(|given| ProjectRoleView::from(given.value));
    let views = views.collect();
    Ok(page.list(views, |view| view.user.0))
}

/// The role that a member has of its own in the project.
#[utoipa::path(
    get, path = "/projects/{project}/roles/{user}", operation_id = "get_project_role",
    tag = "projects", responses((status = 200, body = ProjectRoleView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, user)): Path<(ProjectId, UserId)>,
) -> Result<Resource<ProjectRoleView>, Problem> {
    let found = app.project_role(&call, project, user).await?;
    Ok(Resource::found(found.version, found.value.into()))
}

/// Gives a member of the organization a role in the project.
#[utoipa::path(
    put, path = "/projects/{project}/roles/{user}", operation_id = "give_project_role",
    tag = "projects",
    request_body = ProjectRoleRequest, responses((status = 200, body = ProjectRoleView))
)]
pub(crate) async fn grant(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, user)): Path<(ProjectId, UserId)>,
    Body(ProjectRoleRequest { role }): Body<ProjectRoleRequest>,
) -> Result<Resource<ProjectRoleView>, Problem> {
    let given = app.grant_project_role(&call, project, user, role).await?;
    Ok(Resource::found(given.version, given.value.into()))
}

/// Removes a member's role in the project; the role in the organization is unchanged.
/// Enrolment tokens beyond the remaining role end.
#[utoipa::path(
    delete, path = "/projects/{project}/roles/{user}", operation_id = "take_project_role",
    tag = "projects", responses((status = 204))
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, user)): Path<(ProjectId, UserId)>,
) -> Result<StatusCode, Problem> {
    app.revoke_project_role(&call, project, user).await?;
    Ok(StatusCode::NO_CONTENT)
}
