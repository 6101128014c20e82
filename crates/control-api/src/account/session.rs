//! Routes of the user's sessions.

use crate::request::extract::{Caller, Path, Query};
use crate::request::page::{CursorQuery, List, ListPage};
use crate::response::problem::Problem;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use control_app::{App, PageOrder, SessionInfo};
use control_domain::{Session, SessionOrigin, SignInMethod};
use control_http::SessionCookie;
use control_wire::SessionId;
use jiff::Timestamp;
use serde::Serialize;
use std::net::IpAddr;
use std::sync::Arc;
use utoipa::ToSchema;

/// A session, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionView {
    id: SessionId,
    method: SignInMethod,
    /// True for the session of this request.
    is_own: bool,
    /// The browser's name, shortened.
    browser: String,
    /// The address at which it began.
    #[schema(value_type = Option<String>)]
    address: Option<IpAddr>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The last request, up to 5 minutes too early.
    #[schema(value_type = String, format = DateTime)]
    seen_at: Timestamp,
    /// Expiry unless the session is used again.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// The last proof of identity is fresh until then.
    #[schema(value_type = String, format = DateTime)]
    strong_until: Timestamp,
}

/// The number of sessions that ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndedSessions {
    ended: u64,
}

impl SessionView {
    pub(crate) fn new(session: &Session, is_own: bool) -> Self {
        let SessionOrigin {
            method,
            provider: _,
            address,
            browser,
        } = &session.origin;
        Self {
            id: session.id,
            method: *method,
            is_own,
            browser: browser.clone(),
            address: *address,
            created_at: session.created_at,
            seen_at: session.seen_at,
            expires_at: session.expires_at(),
            strong_until: session.strong_until,
        }
    }
}

/// Response with a page of sessions.
pub(crate) fn page_of(
    page: &ListPage<SessionView>,
    sessions: &[SessionInfo],
) -> Json<List<SessionView>> {
    let views = sessions
        .iter()
        .map(|info| SessionView::new(&info.session, info.is_own));
    page.list(views.collect(), |view| view.id.0)
}

impl EndedSessions {
    pub(crate) fn new(ended: u64) -> Self {
        Self { ended }
    }
}

/// The open sessions of the user, the newest first.
#[utoipa::path(
    get, path = "/users/me/sessions", operation_id = "list_sessions", tag = "users",
    params(CursorQuery), responses((status = 200, body = List<SessionView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Query(query): Query<CursorQuery>,
) -> Result<Json<List<SessionView>>, Problem> {
    let page = query.page(PageOrder::Newest)?;
    let sessions = app.sessions(&call, page.page).await?;
    Ok(page_of(&page, &sessions))
}

/// Ends one session of the user.
#[utoipa::path(
    delete, path = "/users/me/sessions/{session}", operation_id = "delete_session", tag = "users",
    responses((status = 204))
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(session): Path<SessionId>,
) -> Result<StatusCode, Problem> {
    app.revoke_session(&call, session).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends all sessions of the user except the session of the request.
#[utoipa::path(
    delete, path = "/users/me/sessions", operation_id = "delete_other_sessions", tag = "users",
    responses((status = 200, body = EndedSessions))
)]
pub(crate) async fn revoke_others(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
) -> Result<Json<EndedSessions>, Problem> {
    let ended = app.revoke_other_sessions(&call).await?;
    Ok(Json(EndedSessions::new(ended)))
}

/// Ends the session of the request, and takes its cookie from the browser.
#[utoipa::path(
    post, path = "/sign-out", operation_id = "sign_out", tag = "sign-in",
    responses((status = 204))
)]
pub(crate) async fn sign_out(
    State(app): State<Arc<App>>,
    Extension(cookie): Extension<SessionCookie>,
    Caller(call): Caller,
) -> Result<Response, Problem> {
    app.sign_out(&call).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Ok(field) = cookie.clear() {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    Ok(response)
}
