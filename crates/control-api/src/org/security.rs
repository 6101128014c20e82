//! Routes of an organization's security requirements.

use crate::request::extract::{Body, Caller, Path};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::extract::State;
use control_app::{App, Versioned};
use control_domain::OrgSecurity;
use control_wire::OrgId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// Security requirements for members of an organization.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecurityView {
    /// Requires a second factor for sessions. Sessions of the organization's own identity provider
    /// are exempt, because the provider checks it.
    second_factor: bool,
}

impl From<OrgSecurity> for SecurityView {
    fn from(security: OrgSecurity) -> Self {
        let OrgSecurity { second_factor } = security;
        Self { second_factor }
    }
}

/// Security requirements for members of an organization.
#[utoipa::path(
    get, path = "/orgs/{org}/security", operation_id = "get_security", tag = "orgs",
    responses((status = 200, body = SecurityView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
) -> Result<Resource<SecurityView>, Problem> {
    let Versioned { value, version } = app.org_security(&call, org).await?;
    Ok(Resource::found(version, value.into()))
}

/// Changes an organization's security requirements for its members.
/// A member without a required second factor is answered 403 `SECOND_FACTOR_REQUIRED` until it has one.
#[utoipa::path(
    put, path = "/orgs/{org}/security", operation_id = "set_security", tag = "orgs",
    request_body = SecurityView, responses((status = 200, body = SecurityView))
)]
pub(crate) async fn update(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Body(SecurityView { second_factor }): Body<SecurityView>,
) -> Result<Resource<SecurityView>, Problem> {
    let security = OrgSecurity { second_factor };
    let Versioned { value, version } = app.set_org_security(&call, org, security).await?;
    Ok(Resource::found(version, value.into()))
}
