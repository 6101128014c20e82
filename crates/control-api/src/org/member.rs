//! Members of organizations.

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, PageQuery};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, Member};
use control_domain::{Membership, Role};
use control_wire::{OrgId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// A user's role in an organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemberView {
    user: UserId,
    email: String,
    name: String,
    role: Role,
    /// Time of joining.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// Changes of a membership.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemberRequest {
    role: Role,
}

impl From<&Member> for MemberView {
    fn from(member: &Member) -> Self {
        let Member {
            membership,
            email,
            name,
        } = member;
        let Membership {
            org: _,
            user,
            role,
            created_at,
        } = *membership;
        Self {
            user,
            email: email.to_string(),
            name: name.to_string(),
            role,
            created_at,
        }
    }
}

/// The members of an organization.
#[utoipa::path(
    get, path = "/orgs/{org}/members", operation_id = "list_members", tag = "members",
    params(PageQuery), responses((status = 200, body = List<MemberView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Query(query): Query<PageQuery>,
) -> Result<Json<List<MemberView>>, Problem> {
    let page = query.page()?;
    let found = app.members(&call, org, page).await?;
    let views = found.iter().map(|member| MemberView::from(&member.value));
    let views = views.collect();
    Ok(Json(List::new(page, views, |view: &MemberView| {
        view.user.0
    })))
}

/// One member.
#[utoipa::path(
    get, path = "/orgs/{org}/members/{user}", operation_id = "get_member", tag = "members",
    responses((status = 200, body = MemberView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
) -> Result<Resource<MemberView>, Problem> {
    let found = app.member(&call, org, user).await?;
    Ok(Resource::found(
        found.version,
        MemberView::from(&found.value),
    ))
}

/// Changes a member's role; the last administrator's cannot be changed.
/// API keys created by the member are limited to the role; invitations and enrolment tokens beyond it end.
#[utoipa::path(
    patch, path = "/orgs/{org}/members/{user}", operation_id = "update_member", tag = "members",
    request_body = MemberRequest, responses((status = 200, body = MemberView))
)]
pub(crate) async fn change_role(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(place): Path<(OrgId, UserId)>,
    Body(MemberRequest { role }): Body<MemberRequest>,
) -> Result<Resource<MemberView>, Problem> {
    let changed = app.change_role(&call, place, role).await?;
    let view = MemberView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}

/// Removes a member; the last administrator cannot be removed.
/// API keys, invitations and enrolment tokens created by the member end.
#[utoipa::path(
    delete, path = "/orgs/{org}/members/{user}", operation_id = "delete_member", tag = "members",
    responses((status = 204))
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(place): Path<(OrgId, UserId)>,
) -> Result<StatusCode, Problem> {
    app.remove_member(&call, place).await?;
    Ok(StatusCode::NO_CONTENT)
}
