//! Route that previews the effect of files before a bundle is created from them.

use crate::bundle::archive::DiffView;
use crate::bundle::{DiagnosticView, ServicesRequest, source};
use crate::request::extract::{Body, Caller, Path};
use crate::response::problem::Problem;
use axum::Json;
use axum::extract::State;
use control_app::{App, Preview, PreviewComparison};
use control_wire::{BundleId, ErrorResponse, ProjectId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// The files or services of a bundle before its creation, and its nodes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviewRequest {
    /// Texts by name; the configuration begins in `proxy.kdl`.
    files: Option<BTreeMap<String, String>>,
    /// Binary files, such as images, in Base64; only with `files`.
    #[serde(default)]
    assets: BTreeMap<String, String>,
    /// Listeners for the project's services; only without `files`.
    services: Option<ServicesRequest>,
    /// Labels that a node must have, all of them; absent: all nodes.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// The effect that a bundle would have.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreviewView {
    /// SHA-256 of the archive in Base64-URL; absent if the files have errors.
    digest: Option<String>,
    /// Errors and warnings, in the order of the files: at most 100.
    diagnostics: Vec<DiagnosticView>,
    /// Comparisons with bundles ordered for nodes, at most 4, by descending number of nodes.
    comparisons: Vec<PreviewComparisonView>,
    /// Nodes that are ordered to run another bundle.
    other_nodes: i64,
    /// Nodes without an order.
    unordered_nodes: i64,
    /// True if the project's policy requires another person's approval.
    needs_approval: bool,
    /// True if the project's policy refuses a bundle with these warnings.
    refused: bool,
    /// The end of the freeze, if the project's policy allows no change now.
    #[schema(value_type = Option<String>, format = DateTime)]
    frozen_until: Option<Timestamp>,
}

/// A bundle that nodes are ordered to run, compared with the files.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreviewComparisonView {
    before: BundleId,
    /// Name of the bundle.
    name: String,
    /// Number of nodes that are ordered to run it.
    nodes: i64,
    /// True if its archive has the same bytes.
    same: bool,
    /// Absent if the checks of this version refuse the bundle, or its archive cannot be read.
    diff: Option<DiffView>,
}

impl From<Preview> for PreviewView {
    fn from(preview: Preview) -> Self {
        let Preview {
            digest,
            diagnostics,
            comparisons,
            other_nodes,
            unordered_nodes,
            needs_approval,
            is_refused,
            frozen_until,
        } = preview;
        Self {
            digest,
            diagnostics: diagnostics.into_iter().map(DiagnosticView::from).collect(),
            comparisons: comparisons.into_iter().map(Into::into).collect(),
            other_nodes,
            unordered_nodes,
            needs_approval,
            refused: is_refused,
            frozen_until,
        }
    }
}

impl From<PreviewComparison> for PreviewComparisonView {
    fn from(compared: PreviewComparison) -> Self {
        let PreviewComparison {
            before,
            name,
            nodes,
            is_same,
            comparison,
        } = compared;
        Self {
            before,
            name,
            nodes,
            same: is_same,
            diff: comparison.map(DiffView::from),
        }
    }
}

/// Previews a bundle: check, comparison with the nodes' bundles, and the project's policy.
/// Stores nothing.
#[utoipa::path(
    post, path = "/projects/{project}/bundles/preview", operation_id = "preview_bundle",
    tag = "bundles", request_body = PreviewRequest, responses(
        (status = 200, body = PreviewView),
        (status = 503, description = "The memory for uploads is in use, the caller already uploads two bundles, the database is unreachable, or the program stops", body = ErrorResponse)
    )
)]
pub(crate) async fn preview(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(request): Body<PreviewRequest>,
) -> Result<Json<PreviewView>, Problem> {
    let PreviewRequest {
        files,
        assets,
        services,
        labels,
    } = request;
    let source = source(files, assets, services)?;
    let found = app.preview_bundle(&call, project, source, labels).await?;
    Ok(Json(found.into()))
}
