//! Routes of the user's own account.

use crate::account::sign_in::renewed;
use crate::request::extract::{Body, Caller};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use control_app::{App, Identity};
use control_auth::{Password, sha256_hex};
use control_domain::{Role, Scope};
use control_http::SessionCookie;
use control_wire::{ApiKeyId, OrgId, ProjectId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// The identity of the caller.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum IdentityView {
    /// A user with a session.
    User {
        id: UserId,
        email: String,
        name: String,
        /// True if the user administers the whole installation.
        instance_admin: bool,
        memberships: Vec<MembershipView>,
    },
    /// An API key.
    ApiKey {
        id: ApiKeyId,
        org: OrgId,
        /// The project that the key is limited to.
        project: Option<ProjectId>,
        /// Scopes of the key; empty: full access.
        scopes: Vec<Scope>,
        #[schema(value_type = Option<String>, format = DateTime)]
        expires_at: Option<Timestamp>,
    },
}

/// A user's role in an organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MembershipView {
    org: OrgId,
    role: Role,
}

/// Changes of the user.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenameRequest {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
}

/// The next password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordRequest {
    /// Common passwords and passwords derived from the address, the name or the organization are
    /// refused.
    #[schema(format = "password", min_length = 12, max_length = 256)]
    password: String,
}

/// Returns the identity of the caller, and its rights.
#[utoipa::path(
    get, path = "/users/me", operation_id = "get_me", tag = "users",
    responses((status = 200, body = IdentityView))
)]
pub(crate) async fn me(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
) -> Result<Resource<IdentityView>, Problem> {
    let view = match app.identity(&call).await? {
        Identity::User {
            user,
            roles,
            version,
        } => {
            // The response also depends on the roles, and their changes do not change the version.
            let revision = roles_revision(&roles);
            let memberships = roles
                .into_iter()
                .map(|(org, role)| MembershipView { org, role });
            let view = IdentityView::User {
                id: user.id,
                email: user.email.to_string(),
                name: user.name.to_string(),
                instance_admin: user.instance_admin,
                memberships: memberships.collect(),
            };
            return Ok(Resource::found(version, view).with_revision(revision));
        }
        Identity::ApiKey {
            id,
            tenant,
            scopes,
            expires_at,
        } => IdentityView::ApiKey {
            id,
            org: tenant.org,
            project: tenant.project,
            scopes: scopes.into_iter().collect(),
            expires_at,
        },
    };
    Ok(Resource::untagged(view))
}

/// Hash of the roles, equal on all replicas.
fn roles_revision(roles: &BTreeMap<OrgId, Role>) -> String {
    let roles = roles.iter().map(|(org, role)| format!("{org} {role:?}\n"));
    let mut digest = sha256_hex(roles.collect::<String>().as_bytes());
    digest.truncate(16);
    digest
}

/// Renames the user.
#[utoipa::path(
    patch, path = "/users/me", operation_id = "update_me", tag = "users",
    request_body = RenameRequest, responses((status = 200, body = IdentityView))
)]
pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Body(RenameRequest { name }): Body<RenameRequest>,
) -> Result<Resource<IdentityView>, Problem> {
    app.rename_user(&call, &name).await?;
    me(State(app), Caller(call)).await
}

/// Changes the user's password. All other sessions end; this one gets a new cookie.
#[utoipa::path(
    post, path = "/users/me/password", operation_id = "change_password", tag = "users",
    request_body = PasswordRequest, responses((status = 204))
)]
pub(crate) async fn change_password(
    State(app): State<Arc<App>>,
    Extension(cookie): Extension<SessionCookie>,
    Caller(call): Caller,
    Body(PasswordRequest { password }): Body<PasswordRequest>,
) -> Result<Response, Problem> {
    let secret = app.change_password(&call, Password::new(password)).await?;
    Ok(renewed(cookie, &secret, StatusCode::NO_CONTENT))
}
