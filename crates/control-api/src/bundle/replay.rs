//! Route that replays recorded requests under two bundles.

use crate::request::extract::{Body, Caller, Path};
use crate::response::problem::Problem;
use axum::Json;
use axum::extract::State;
use control_app::{App, KindMoved, Replayed};
use control_wire::{BundleId, ErrorResponse, ProjectId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// Maximum size of a recording as JSON, with room for escapes.
pub(crate) const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Recorded requests, and the bundle to compare with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayRequest {
    /// The older bundle, of the same project.
    before: BundleId,
    /// One request per line, as JSON: lines of `GET /admin/recording` of a node, or of its access log; at most 50 000.
    recording: String,
}

/// The decisions of two bundles on recorded requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReplayView {
    /// Requests that were decided on.
    requests: u64,
    /// Requests that are decided otherwise.
    different: u64,
    /// Kinds of requests: those with one decision before and one after; at most 10 000.
    kinds: usize,
    /// Kinds that are decided otherwise, most frequent first: at most 1 000.
    differences: Vec<KindView>,
    /// Kinds that are decided otherwise and are not listed.
    omitted_differences: usize,
    /// Requests that another route answered when they were recorded than the older bundle: 0 if that bundle was
    /// active.
    unlike_recorded: u64,
    /// A description of the first of them.
    unlike_example: Option<String>,
    /// Lines that are not requests.
    skipped_lines: usize,
}

/// Requests with the same pair of different decisions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KindView {
    /// The decision of the older bundle: route and service, or a refusal.
    before: String,
    /// The decision of this bundle.
    after: String,
    /// Number of requests.
    requests: u64,
    /// Method, host and path of the first of them, without its query.
    example: String,
}

impl From<Replayed> for ReplayView {
    fn from(replayed: Replayed) -> Self {
        let Replayed {
            requests,
            different,
            kinds,
            differences,
            omitted_differences,
            unlike_recorded,
            unlike_example,
            skipped_lines,
        } = replayed;
        Self {
            requests,
            different,
            kinds,
            differences: differences.into_iter().map(KindView::from).collect(),
            omitted_differences,
            unlike_recorded,
            unlike_example,
            skipped_lines,
        }
    }
}

impl From<KindMoved> for KindView {
    fn from(kind: KindMoved) -> Self {
        let KindMoved {
            before,
            after,
            requests,
            example,
        } = kind;
        Self {
            before,
            after,
            requests,
            example,
        }
    }
}

/// Counts the recorded requests on which a bundle and an older one decide differently.
/// The rate limits and circuit breakers of both apply at the recorded times. All targets count as
/// healthy; no request is sent or stored.
#[utoipa::path(
    post, path = "/projects/{project}/bundles/{bundle}/replay", operation_id = "replay_bundle",
    tag = "bundles", request_body = ReplayRequest, responses(
        (status = 200, body = ReplayView),
        (status = 409, description = "One of them was rejected: it has no archive", body = ErrorResponse),
        (status = 422, description = "The recording has no request or too many, the older bundle is not of this project, or the current checks refuse one of them", body = ErrorResponse),
        (status = 503, description = "The memory for uploads is in use, the caller already uploads two bundles, the database is unreachable, or the program stops", body = ErrorResponse)
    )
)]
pub(crate) async fn replay(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, bundle)): Path<(ProjectId, BundleId)>,
    Body(request): Body<ReplayRequest>,
) -> Result<Json<ReplayView>, Problem> {
    let ReplayRequest { before, recording } = request;
    let replayed = app
        .replay_requests(&call, project, bundle, before, recording)
        .await?;
    Ok(Json(replayed.into()))
}
