//! Routes of members.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, Member, PageOrder, SortColumn};
use control_domain::{Membership, Role};
use control_wire::{OrgId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A user's role in an organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemberView {
    user: UserId,
    email: String,
    name: String,
    role: Role,
    /// True if the user has set a second factor up.
    second_factor: bool,
    /// Start of the user's newest session; absent if none is on record.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_sign_in_at: Option<Timestamp>,
    /// Time of joining.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<MemberView> = &[
    ("user", SortBy::Id),
    ("email", SortBy::Text(SortColumn::Email, |view| &view.email)),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
    (
        "created_at",
        SortBy::Number(SortColumn::CreatedAt, |view| {
            view.created_at.as_millisecond()
        }),
    ),
];

/// Filters and page of members.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MemberQuery {
    /// Only items of this e-mail address, or of addresses that begin so if it ends in `*`; in capitals or not.
    email: Option<String>,
    /// Field to sort by, with `-` before it from the greatest: `user` (by the creation of the user), `email`, `name`,
    /// `created_at`.
    #[param(pattern = "^-?(user|email|name|created_at)$", example = "-created_at")]
    sort: Option<String>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
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
            second_factor,
            last_sign_in_at,
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
            second_factor: *second_factor,
            last_sign_in_at: *last_sign_in_at,
            created_at,
        }
    }
}

/// The members of an organization.
#[utoipa::path(
    get, path = "/orgs/{org}/members", operation_id = "list_members", tag = "members",
    params(MemberQuery), responses((status = 200, body = List<MemberView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Query(query): Query<MemberQuery>,
) -> Result<Json<List<MemberView>>, Problem> {
    let MemberQuery {
        email,
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let filter = page.filter_by_email(email);
    let found = app.members(&call, org, &filter, page.page).await?;
    let views = found.iter().map(|member| MemberView::from(&member.value));
    let views = views.collect();
    Ok(page.list(views, |view| view.user.0))
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
    let view = MemberView::from(&found.value);
    Ok(Resource::composed(found.version, view))
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
    Path((org, user)): Path<(OrgId, UserId)>,
    Body(MemberRequest { role }): Body<MemberRequest>,
) -> Result<Resource<MemberView>, Problem> {
    let changed = app.change_role(&call, org, user, role).await?;
    let view = MemberView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}

/// Removes a member; the last administrator cannot be removed.
/// API keys, invitations and enrolment tokens created by the member end. The identity provider does not make it a member
/// again, until an administrator invites its address or deletes it from the removed members.
#[utoipa::path(
    delete, path = "/orgs/{org}/members/{user}", operation_id = "delete_member", tag = "members",
    responses((status = 204))
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
) -> Result<StatusCode, Problem> {
    app.remove_member(&call, org, user).await?;
    Ok(StatusCode::NO_CONTENT)
}
