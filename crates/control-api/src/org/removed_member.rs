//! Routes of members that an administrator removed.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::request::extract::{Caller, Path, Query};
use crate::request::page::{List, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, PageOrder, RemovedMember, SortColumn};
use control_wire::{OrgId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A user that an administrator removed from the organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemovedMemberView {
    user: UserId,
    email: String,
    name: String,
    /// Time of the removal.
    #[schema(value_type = String, format = DateTime)]
    removed_at: Timestamp,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<RemovedMemberView> = &[
    ("user", SortBy::Id),
    ("email", SortBy::Text(SortColumn::Email, |view| &view.email)),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
    (
        "removed_at",
        SortBy::Number(SortColumn::CreatedAt, |view| {
            view.removed_at.as_millisecond()
        }),
    ),
];

/// Filters and page of removed members.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemovedMemberQuery {
    /// Only items of this e-mail address, or of addresses that begin so if it ends in `*`; in capitals or not.
    email: Option<String>,
    /// Field to sort by, with `-` before it from the greatest: `user` (by the creation of the user), `email`, `name`,
    /// `removed_at`.
    #[param(pattern = "^-?(user|email|name|removed_at)$", example = "-removed_at")]
    sort: Option<String>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

impl From<&RemovedMember> for RemovedMemberView {
    fn from(removed: &RemovedMember) -> Self {
        let RemovedMember {
            user,
            email,
            name,
            removed_at,
        } = removed;
        Self {
            user: *user,
            email: email.to_string(),
            name: name.to_string(),
            removed_at: *removed_at,
        }
    }
}

/// The users that administrators removed from the organization, and did not admit again.
/// Sign-in by the identity provider is refused to them.
#[utoipa::path(
    get, path = "/orgs/{org}/removed-members", operation_id = "list_removed_members",
    tag = "removed-members",
    params(RemovedMemberQuery), responses((status = 200, body = List<RemovedMemberView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Query(query): Query<RemovedMemberQuery>,
) -> Result<Json<List<RemovedMemberView>>, Problem> {
    let RemovedMemberQuery {
        email,
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let filter = page.filter_by_email(email);
    let found = app.removed_members(&call, org, &filter, page.page).await?;
    let views = found.iter().map(RemovedMemberView::from).collect();
    Ok(page.list(views, |view| view.user.0))
}

/// Admits a removed member again: the next sign-in by the identity provider makes it a member.
/// An invitation of its address does the same.
#[utoipa::path(
    delete, path = "/orgs/{org}/removed-members/{user}", operation_id = "delete_removed_member",
    tag = "removed-members", responses((status = 204))
)]
pub(crate) async fn readmit(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
) -> Result<StatusCode, Problem> {
    app.readmit_member(&call, org, user).await?;
    Ok(StatusCode::NO_CONTENT)
}
