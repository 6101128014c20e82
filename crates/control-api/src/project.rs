//! Projects.

use crate::extract::{Body, Caller, Path, Query};
use crate::page::{List, PageQuery};
use crate::problem::Problem;
use crate::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::App;
use control_domain::Project;
use control_wire::{OrgId, ProjectId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// A project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProjectView {
    id: ProjectId,
    org: OrgId,
    name: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// The fields of a project that may be chosen.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectRequest {
    /// Unique in the organization.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
}

impl From<&Project> for ProjectView {
    fn from(project: &Project) -> Self {
        let Project {
            id,
            org,
            name,
            created_at,
        } = project;
        Self {
            id: *id,
            org: *org,
            name: name.to_string(),
            created_at: *created_at,
        }
    }
}

/// The projects of an organization.
#[utoipa::path(
    get, path = "/orgs/{org}/projects", operation_id = "list_projects", tag = "projects",
    params(PageQuery), responses((status = 200, body = List<ProjectView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Query(query): Query<PageQuery>,
) -> Result<Json<List<ProjectView>>, Problem> {
    let page = query.page()?;
    let found = app.projects(&call, org, page).await?;
    let views = found.iter().map(|found| ProjectView::from(&found.value));
    let views = views.collect();
    Ok(Json(List::new(page, views, |view: &ProjectView| view.id.0)))
}

/// Creates a project.
#[utoipa::path(
    post, path = "/orgs/{org}/projects", operation_id = "create_project", tag = "projects",
    request_body = ProjectRequest, responses((status = 201, body = ProjectView))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Body(ProjectRequest { name }): Body<ProjectRequest>,
) -> Result<Resource<ProjectView>, Problem> {
    let made = app.create_project(&call, org, &name).await?;
    let view = ProjectView::from(&made.value);
    let path = format!("/projects/{}", made.value.id);
    Ok(Resource::created(made.version, view).at(&path))
}

/// One project.
#[utoipa::path(
    get, path = "/projects/{project}", operation_id = "get_project", tag = "projects",
    responses((status = 200, body = ProjectView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
) -> Result<Resource<ProjectView>, Problem> {
    let found = app.project(&call, project).await?;
    let view = ProjectView::from(&found.value);
    Ok(Resource::found(found.version, view))
}

/// Renames a project.
#[utoipa::path(
    patch, path = "/projects/{project}", operation_id = "update_project", tag = "projects",
    request_body = ProjectRequest, responses((status = 200, body = ProjectView))
)]
pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(ProjectRequest { name }): Body<ProjectRequest>,
) -> Result<Resource<ProjectView>, Problem> {
    let changed = app.rename_project(&call, project, &name).await?;
    let view = ProjectView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}

/// Deletes a project that has no nodes, with all that belongs to it.
#[utoipa::path(
    delete, path = "/projects/{project}", operation_id = "delete_project", tag = "projects",
    responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
) -> Result<StatusCode, Problem> {
    app.delete_project(&call, project).await?;
    Ok(StatusCode::NO_CONTENT)
}
