//! Routes of projects.
#![expect(unused_qualifications, reason = "the path macro writes them")]

pub(crate) mod role;
pub(crate) mod webhook;

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, PageOrder, SortColumn};
use control_domain::{ApprovalRule, Freezes, PolicyChange, PolicyRules, Project, ProjectPolicy};
use control_wire::{OrgId, ProjectId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProjectView {
    id: ProjectId,
    org: OrgId,
    name: String,
    policy: PolicyView,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// The policy of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PolicyView {
    #[serde(flatten)]
    rules: RulesView,
    /// A weaker policy requested by one administrator, active when another one requests the same.
    weaker: Option<WeakerPolicyView>,
}

/// Rules for all rollouts and assignments of a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RulesView {
    /// Condition for approval of another bundle by a second person: `none`, if the rollout requests
    /// it; `risky`, also if more than comments, tests and new upstreams changes; `all`, always.
    approve: ApprovalRule,
    /// True if bundles with warnings are refused.
    refuse_warnings: bool,
    /// Times of the week in UTC at which no rollout starts or opens a batch, and nothing is assigned.
    #[schema(example = json!(["Fri 16:00-Mon 08:00"]))]
    freeze: Vec<String>,
}

/// A weaker policy that waits for a second administrator.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WeakerPolicyView {
    #[serde(flatten)]
    rules: RulesView,
    /// The user that requested it.
    asked_by: UserId,
}

/// The requested policy; absent fields are unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyRequest {
    /// Condition for approval of another bundle by a second person.
    approve: Option<ApprovalRule>,
    /// Refuses bundles with warnings.
    refuse_warnings: Option<bool>,
    /// Times of the week in UTC without changes, at most 16, each with its end excluded; an empty list ends all.
    #[schema(max_items = 16, example = json!(["Fri 16:00-Mon 08:00"]))]
    freeze: Option<Vec<String>>,
}

impl PolicyRequest {
    fn read(self) -> Result<PolicyChange, Problem> {
        let Self {
            approve,
            refuse_warnings,
            freeze,
        } = self;
        let freezes = freeze.map(|texts| Freezes::parse(texts.iter().map(String::as_str)));
        Ok(PolicyChange {
            approve,
            refuse_warnings,
            freezes: freezes.transpose()?,
        })
    }
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<ProjectView> = &[
    ("created_at", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
];

/// Filters and page of projects.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ProjectQuery {
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

impl From<&PolicyRules> for RulesView {
    fn from(rules: &PolicyRules) -> Self {
        let PolicyRules {
            approve,
            refuse_warnings,
            freezes,
        } = rules;
        Self {
            approve: *approve,
            refuse_warnings: *refuse_warnings,
            freeze: freezes.texts(),
        }
    }
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
            policy: ProjectPolicy { rules, weaker },
            created_at,
        } = project;
        Self {
            id: *id,
            org: *org,
            name: name.to_string(),
            policy: PolicyView {
                rules: rules.into(),
                weaker: weaker.as_ref().map(|weaker| WeakerPolicyView {
                    rules: (&weaker.rules).into(),
                    asked_by: weaker.asked_by,
                }),
            },
            created_at: *created_at,
        }
    }
}

/// The projects of an organization.
#[utoipa::path(
    get, path = "/orgs/{org}/projects", operation_id = "list_projects", tag = "projects",
    params(ProjectQuery), responses((status = 200, body = List<ProjectView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Query(query): Query<ProjectQuery>,
) -> Result<Json<List<ProjectView>>, Problem> {
    let ProjectQuery {
        name,
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let filter = page.filter(name);
    let found = app.projects(&call, org, &filter, page.page).await?;
    let views = found.iter().map(|found| ProjectView::from(&found.value));
    let views = views.collect();
    Ok(page.list(views, |view| view.id.0))
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

/// Asks for a policy. A stricter one holds at once; a weaker one, unless `approve` is `none`, when a second
/// administrator
/// asks for the same. It binds rollouts that start or go on, assignments, and as far as approval goes accepted drift.
#[utoipa::path(
    put, path = "/projects/{project}/policy", operation_id = "set_project_policy",
    tag = "projects",
    request_body = PolicyRequest, responses((status = 200, body = ProjectView))
)]
pub(crate) async fn set_policy(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(request): Body<PolicyRequest>,
) -> Result<Resource<ProjectView>, Problem> {
    let changed = app.ask_policy(&call, project, request.read()?).await?;
    let view = ProjectView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}

/// Deletes a project without nodes, and everything in it.
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
