//! Users.

use crate::extract::Caller;
use crate::names::{RoleName, ScopeName};
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use control_app::{App, Identity};
use control_wire::{ApiKeyId, OrgId, ProjectId, UserId};
use jiff::Timestamp;
use serde::Serialize;
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
        /// Whether the user administers the whole installation.
        instance_admin: bool,
        memberships: Vec<MembershipView>,
    },
    /// An API key.
    ApiKey {
        id: ApiKeyId,
        org: OrgId,
        /// The project that the key is limited to.
        project: Option<ProjectId>,
        /// What the key may do; empty: full access.
        scopes: Vec<ScopeName>,
        #[schema(value_type = Option<String>, format = DateTime)]
        expires_at: Option<Timestamp>,
    },
}

/// A user's role in an organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MembershipView {
    org: OrgId,
    role: RoleName,
}

/// The identity of the caller, and what it may do.
#[utoipa::path(
    get, path = "/users/me", operation_id = "get_me", tag = "users",
    responses((status = 200, body = IdentityView))
)]
pub(crate) async fn me(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
) -> Result<Json<IdentityView>, Problem> {
    let view = match app.identity(&call).await? {
        Identity::User { user, roles } => {
            let memberships = roles.into_iter().map(|(org, role)| MembershipView {
                org,
                role: role.into(),
            });
            IdentityView::User {
                id: user.id,
                email: user.email.to_string(),
                name: user.name.to_string(),
                instance_admin: user.instance_admin,
                memberships: memberships.collect(),
            }
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
            scopes: scopes.into_iter().map(ScopeName::from).collect(),
            expires_at,
        },
    };
    Ok(Json(view))
}
