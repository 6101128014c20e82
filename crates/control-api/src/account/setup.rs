//! Routes of the set-up.

pub(crate) mod status;

use crate::account::api_key::CreatedApiKey;
use crate::org::OrgView;
use crate::project::ProjectView;
use crate::request::extract::{Body, Caller};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use control_app::{App, Installation, NewInstallation, Versioned};
use control_auth::Password;
use control_domain::NewUser;
use control_http::SessionCookie;
use control_wire::UserId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// The first organization and its administrator.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetUpRequest {
    /// The organization's name.
    #[schema(min_length = 1, max_length = 100)]
    org_name: String,
    /// The first project's name; absent: no project.
    #[schema(min_length = 1, max_length = 100)]
    project_name: Option<String>,
    /// The administrator's e-mail address, to sign in with.
    email: String,
    /// The administrator's name.
    #[schema(min_length = 1, max_length = 100)]
    user_name: String,
    /// The administrator's password.
    #[schema(min_length = 12, max_length = 256)]
    password: String,
    /// The name of a first API key with full access; absent: no key.
    #[schema(min_length = 1, max_length = 100)]
    api_key_name: Option<String>,
}

/// The created objects. The secret of the API key is shown once.
#[derive(Serialize, ToSchema)]
pub(crate) struct SetUpView {
    org: OrgView,
    project: Option<ProjectView>,
    user_id: UserId,
    api_key: Option<CreatedApiKey>,
}

/// Creates the first organization and its administrator, and signs the administrator in.
#[utoipa::path(
    post, path = "/setup", operation_id = "set_up", tag = "setup",
    request_body = SetUpRequest, responses((status = 201, body = SetUpView))
)]
pub(crate) async fn set_up(
    State(app): State<Arc<App>>,
    Extension(cookie): Extension<SessionCookie>,
    Caller(call): Caller,
    Body(request): Body<SetUpRequest>,
) -> Result<Response, Problem> {
    let SetUpRequest {
        org_name,
        project_name,
        email,
        user_name,
        password,
        api_key_name,
    } = request;
    let new = NewInstallation {
        org_name,
        project_name,
        admin: NewUser {
            email,
            name: user_name,
            password: Password::new(password),
        },
        api_key_name,
    };
    let Installation {
        org,
        project,
        user,
        session,
        api_key,
    } = app.set_up(&call, &new).await?;
    let view = SetUpView {
        org: OrgView::from(&org),
        project: project.as_ref().map(ProjectView::from),
        user_id: user.id,
        api_key: api_key
            .map(|(key, secret)| CreatedApiKey::new(&Versioned::new(key), &secret, call.now)),
    };
    let path = format!("/orgs/{}", org.id);
    let mut response = Resource::secret(1, view).at(&path).into_response();
    for field in cookie.set_all(&session) {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    Ok(response)
}
