//! Routes by which administrators manage members' sign-in.

use crate::account::session::{EndedSessions, SessionView, page_of};
use crate::request::extract::{Body, Caller, Path, Query, Visitor};
use crate::request::page::{CursorQuery, List};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use control_app::{App, PageOrder};
use control_auth::{Password, Secret};
use control_http::SessionCookie;
use control_wire::{OrgId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// A link by which a member sets another password. The secret is shown this once.
#[derive(Serialize, ToSchema)]
pub(crate) struct PasswordResetView {
    /// For the body of `POST /api/v1/password-resets/use`.
    secret: String,
    #[schema(value_type = String, format = DateTime)]
    ends_at: Timestamp,
}

/// The secret of a link, and the next password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UseResetRequest {
    #[schema(max_length = 256)]
    secret: String,
    /// Common passwords and passwords derived from the address, the name or the organization are
    /// refused.
    #[schema(format = "password", min_length = 12, max_length = 256)]
    password: String,
}

/// The open sessions of a member, the newest first. Members with rights beyond the caller's are 403.
#[utoipa::path(
    get, path = "/orgs/{org}/members/{user}/sessions", operation_id = "list_member_sessions",
    tag = "members", params(CursorQuery), responses((status = 200, body = List<SessionView>))
)]
pub(crate) async fn sessions(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
    Query(query): Query<CursorQuery>,
) -> Result<Json<List<SessionView>>, Problem> {
    let page = query.page(PageOrder::Newest)?;
    let sessions = app.member_sessions(&call, org, user, page.page).await?;
    Ok(page_of(&page, &sessions))
}

/// Ends all sessions of a member.
#[utoipa::path(
    delete, path = "/orgs/{org}/members/{user}/sessions", operation_id = "delete_member_sessions",
    tag = "members", responses((status = 200, body = EndedSessions))
)]
pub(crate) async fn end_sessions(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
) -> Result<Json<EndedSessions>, Problem> {
    let ended = app.end_member_sessions(&call, org, user).await?;
    Ok(Json(EndedSessions::new(ended)))
}

/// Removes a member's second factor, and ends its sessions.
/// The member is informed at the next sign-in.
#[utoipa::path(
    delete, path = "/orgs/{org}/members/{user}/totp", operation_id = "reset_member_second_factor",
    tag = "members", responses((status = 204))
)]
pub(crate) async fn reset_second_factor(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
) -> Result<StatusCode, Problem> {
    app.reset_member_second_factor(&call, org, user).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Creates a one-time link, valid for 24 hours, for a member to set another password.
/// The administrator sends it to the member. It replaces an earlier one.
#[utoipa::path(
    post, path = "/orgs/{org}/members/{user}/reset-password", operation_id = "create_password_reset",
    tag = "members", responses((status = 200, body = PasswordResetView))
)]
pub(crate) async fn create_reset(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((org, user)): Path<(OrgId, UserId)>,
) -> Result<Resource<PasswordResetView>, Problem> {
    let (reset, secret) = app.create_password_reset(&call, org, user).await?;
    Ok(Resource::issued(PasswordResetView {
        secret: secret.reveal().to_owned(),
        ends_at: reset.ends_at,
    }))
}

/// Sets the password of the link's user, and ends all its sessions. The user signs in next.
#[utoipa::path(
    post, path = "/password-resets/use", operation_id = "use_password_reset", tag = "sign-in",
    request_body = UseResetRequest, responses((status = 204))
)]
pub(crate) async fn use_reset(
    State(app): State<Arc<App>>,
    Extension(cookie): Extension<SessionCookie>,
    Visitor(visit): Visitor,
    Body(UseResetRequest { secret, password }): Body<UseResetRequest>,
) -> Result<Response, Problem> {
    let (secret, password) = (Secret::presented(&secret), Password::new(password));
    let browser = app.use_password_reset(&visit, &secret, &password).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Ok(field) = cookie.set_browser(&browser) {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    Ok(response)
}
