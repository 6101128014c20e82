//! Roles of members in single projects.

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, PageQuery};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::App;
use control_domain::{ProjectRole, Role};
use control_wire::{ProjectId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

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

/// The role to give: `operator` or `admin`; every member can read.
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
    params(PageQuery), responses((status = 200, body = List<ProjectRoleView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<PageQuery>,
) -> Result<Json<List<ProjectRoleView>>, Problem> {
    let page = query.page()?;
    let found = app.project_roles(&call, project, page).await?;
    let views = found.iter().map(|given| ProjectRoleView::from(given.value));
    let views = views.collect();
    Ok(Json(List::new(page, views, |view: &ProjectRoleView| {
        view.user.0
    })))
}

/// The role that a member has of its own in the project.
#[utoipa::path(
    get, path = "/projects/{project}/roles/{user}", operation_id = "get_project_role",
    tag = "projects", responses((status = 200, body = ProjectRoleView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(place): Path<(ProjectId, UserId)>,
) -> Result<Resource<ProjectRoleView>, Problem> {
    let found = app.project_role(&call, place).await?;
    Ok(Resource::found(found.version, found.value.into()))
}

/// Gives a member of the organization a role in the project.
#[utoipa::path(
    put, path = "/projects/{project}/roles/{user}", operation_id = "give_project_role",
    tag = "projects",
    request_body = ProjectRoleRequest, responses((status = 200, body = ProjectRoleView))
)]
pub(crate) async fn give(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(place): Path<(ProjectId, UserId)>,
    Body(ProjectRoleRequest { role }): Body<ProjectRoleRequest>,
) -> Result<Resource<ProjectRoleView>, Problem> {
    let given = app.give_project_role(&call, place, role).await?;
    Ok(Resource::found(given.version, given.value.into()))
}

/// Removes a member's role in the project; the role in the organization is unchanged.
/// Enrolment tokens beyond the remaining role end.
#[utoipa::path(
    delete, path = "/projects/{project}/roles/{user}", operation_id = "take_project_role",
    tag = "projects", responses((status = 204))
)]
pub(crate) async fn take(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(place): Path<(ProjectId, UserId)>,
) -> Result<StatusCode, Problem> {
    app.take_project_role(&call, place).await?;
    Ok(StatusCode::NO_CONTENT)
}
