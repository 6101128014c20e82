//! Route of an organization's limits.

use crate::request::extract::{Caller, Path};
use crate::response::problem::Problem;
use axum::Json;
use axum::extract::State;
use control_app::{App, OrgLimits};
use control_domain::{Quotas, Retention};
use control_wire::OrgId;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The limits of an organization, which the installation sets for all.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrgLimitsView {
    /// The maximum.
    quotas: QuotasView,
    /// The current use.
    used: QuotasView,
    /// Retention in days after the end of a value; 0 is unlimited.
    retention_days: RetentionView,
}

/// One number for each kind that has a quota.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuotasView {
    projects: u64,
    /// In all projects.
    nodes: u64,
    /// API keys that are not deleted.
    api_keys: u64,
    /// Bundles that are not deleted, rejected ones too.
    bundles: u64,
    /// Bytes of the archives of all bundles.
    archive_bytes: u64,
    /// Webhooks of all projects.
    webhooks: u64,
}

/// Days that values are kept.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RetentionView {
    /// After their end.
    rollouts: u32,
    /// Unused bundles, counted from their creation.
    bundles: u32,
    /// Drift events, after they were resolved.
    drift: u32,
    /// Enrolment tokens and API keys, after they expired or were revoked.
    tokens: u32,
    /// Entries of the audit log, after they were written; archives of them are kept.
    audit: u32,
    /// Requests by steps of six hours, after they were counted; shorter steps are kept for nine days at most.
    traffic: u32,
}

impl From<Quotas> for QuotasView {
    fn from(quotas: Quotas) -> Self {
        let Quotas {
            projects,
            nodes,
            api_keys,
            bundles,
            archive_bytes,
            webhooks,
        } = quotas;
        Self {
            projects,
            nodes,
            api_keys,
            bundles,
            archive_bytes,
            webhooks,
        }
    }
}

impl From<Retention> for RetentionView {
    fn from(retention: Retention) -> Self {
        let Retention {
            rollouts,
            bundles,
            drift,
            tokens,
            audit,
            traffic,
        } = retention;
        Self {
            rollouts,
            bundles,
            drift,
            tokens,
            audit,
            traffic,
        }
    }
}

/// The quotas of the organization with their current use, and the retention in days.
#[utoipa::path(
    get, path = "/orgs/{org}/limits", operation_id = "get_org_limits", tag = "orgs",
    responses((status = 200, body = OrgLimitsView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
) -> Result<Json<OrgLimitsView>, Problem> {
    let OrgLimits {
        quotas,
        used,
        retention,
    } = app.org_limits(&call, org).await?;
    Ok(Json(OrgLimitsView {
        quotas: quotas.into(),
        used: used.into(),
        retention_days: retention.into(),
    }))
}
