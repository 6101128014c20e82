//! Routes of archives: download, verification, inspection, comparison.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::request::extract::{Caller, Path, Query};
use crate::response::problem::Problem;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use control_app::{
    App, Archive, Change, Comparison, FileChange, PartMoved, RequestsMoved, SettingChange,
    Verification,
};
use control_domain::{BundleArchive, BundleSignature, SigningKeyState};
use control_wire::{BundleId, ErrorResponse, NodeId, ProjectId, SigningKeyId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

const ZSTD: HeaderValue = HeaderValue::from_static("application/zstd");
const CYCLONE_DX: HeaderValue = HeaderValue::from_static("application/vnd.cyclonedx+json");

/// Result of verifying the stored bytes and the signature.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VerificationView {
    /// True if no fault was found.
    valid: bool,
    /// SHA-256 of the archive in Base64-URL.
    digest: String,
    size_bytes: u64,
    /// The key that signed.
    kid: SigningKeyId,
    /// Its public half: 32 bytes in Base64-URL.
    public_key: String,
    /// The present use of the key.
    signing_key_state: SigningKeyState,
    /// Time of the key's deactivation, perhaps because it leaked: its signatures prove nothing
    /// since then. Nodes accept orders by newer keys.
    #[schema(value_type = Option<String>, format = DateTime)]
    signing_key_deactivated_at: Option<Timestamp>,
    /// Ed25519 in Base64-URL, over the lines `bundle v1`, digest and kid.
    signature: String,
    #[schema(value_type = String, format = DateTime)]
    signed_at: Timestamp,
    /// True if the stored bytes have the digest.
    digest_matches: bool,
    /// True if the signature is of the digest, by that key.
    signature_matches: bool,
    /// Reason why the archive cannot be unpacked; absent if every file matches its manifest.
    fault: Option<String>,
}

/// The bundle to compare with.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiffQuery {
    /// The older bundle, of the same project.
    before: Uuid,
}

/// Differences of a bundle from an older one.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DiffView {
    /// Potentially harmful changes, most severe class first. Empty exactly if the policy `risky`
    /// requires no approval.
    risks: Vec<RiskView>,
    /// Requests that another route or service answers: at most 5 000 regions.
    requests: Vec<RequestsView>,
    /// Regions of requests that are not listed.
    omitted_requests: usize,
    /// Ids of routes that no longer take requests.
    unreachable_routes: Vec<String>,
    /// Listeners, certificates, routes, upstreams, targets and agents that were added or removed.
    parts: Vec<PartView>,
    /// Connections that a reload ends.
    drained: Vec<String>,
    /// Limits of the comparison: regexes that were compared by a sample of their paths, bounds that were reached.
    limits: Vec<String>,
    /// Effective settings that differ, by path: at most 5 000.
    settings: Vec<SettingChangeView>,
    /// Settings that differ and are not listed.
    omitted: usize,
    /// Files that differ, by name.
    files: Vec<FileChangeView>,
}

/// A change that may harm clients.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RiskView {
    /// The class, such as `agent-removed`.
    class: &'static str,
    /// The part of the configuration, such as `route api`.
    subject: String,
    /// The change, as a sentence.
    change: String,
}

/// Requests that one route or service answers before, and another one after.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestsView {
    /// Names of the listeners.
    listeners: Vec<String>,
    /// Names and patterns; one `*` for every host.
    hosts: Vec<String>,
    /// Texts and patterns; one `*` for every path.
    paths: Vec<String>,
    /// Conditions on method, headers and query, all of which hold; empty for every request.
    conditions: Vec<String>,
    /// The route and the service before.
    before: String,
    /// The route and the service after.
    after: String,
    /// The method and the URL of one of the requests.
    example: String,
}

/// A part that was added or removed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PartView {
    /// Its kind and name, such as `upstream api`.
    part: String,
    change: ChangeName,
}

/// A setting that differs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettingChangeView {
    /// Path of the setting, such as `routes.route["api"].priority`.
    path: String,
    change: ChangeName,
    /// The values before; several for a repeatable setting.
    before: Vec<Value>,
    /// The values after.
    after: Vec<Value>,
    /// IDs of the routes with affected requests; empty if it applies to all or to none.
    routes: Vec<String>,
}

/// A file that differs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileChangeView {
    name: String,
    change: ChangeName,
}

/// Kinds of change.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeName {
    /// Not in the older one.
    Added,
    /// The part was removed.
    Removed,
    /// In both, with another value.
    Changed,
}

impl From<Change> for ChangeName {
    fn from(change: Change) -> Self {
        match change {
            Change::Added => Self::Added,
            Change::Removed => Self::Removed,
            Change::Changed => Self::Changed,
        }
    }
}

impl From<Verification> for VerificationView {
    fn from(verification: Verification) -> Self {
        let valid = verification.is_valid();
        let Verification {
            archive: BundleArchive { digest, size_bytes },
            signature:
                BundleSignature {
                    kid,
                    text: signature,
                    signed_at,
                },
            signing_key,
            digest_matches,
            signature_matches,
            fault,
        } = verification;
        Self {
            valid,
            digest,
            size_bytes,
            kid,
            public_key: signing_key.public_key.as_str().to_owned(),
            signing_key_state: signing_key.state,
            signing_key_deactivated_at: signing_key.deactivated_at,
            signature,
            signed_at,
            digest_matches,
            signature_matches,
            fault,
        }
    }
}

impl From<Comparison> for DiffView {
    fn from(comparison: Comparison) -> Self {
        let Comparison {
            risks,
            requests,
            omitted_requests,
            unreachable_routes,
            parts,
            drained,
            limits,
            settings,
            omitted,
            files,
        } = comparison;
        let risk = |risk: control_app::RiskView| {
            let control_app::RiskView {
                class,
                subject,
                change,
            } = risk;
            RiskView {
                class,
                subject,
                change,
            }
        };
        let part = |PartMoved { part, change }| PartView {
            part,
            change: ChangeName::from(change),
        };
        let file = |FileChange { name, change }| FileChangeView {
            name,
            change: ChangeName::from(change),
        };
        Self {
            risks: risks.into_iter().map(risk).collect(),
            requests: requests.into_iter().map(RequestsView::from).collect(),
            omitted_requests,
            unreachable_routes,
            parts: parts.into_iter().map(part).collect(),
            drained,
            limits,
            settings: settings.into_iter().map(SettingChangeView::from).collect(),
            omitted,
            files: files.into_iter().map(file).collect(),
        }
    }
}

impl From<RequestsMoved> for RequestsView {
    fn from(moved: RequestsMoved) -> Self {
        let RequestsMoved {
            listeners,
            hosts,
            paths,
            conditions,
            before,
            after,
            example,
        } = moved;
        Self {
            listeners,
            hosts,
            paths,
            conditions,
            before,
            after,
            example,
        }
    }
}

impl From<SettingChange> for SettingChangeView {
    fn from(change: SettingChange) -> Self {
        let SettingChange {
            path,
            change,
            before,
            after,
            routes,
        } = change;
        Self {
            path,
            change: change.into(),
            before,
            after,
            routes,
        }
    }
}

/// Streams the archive; the digest is the `ETag`.
fn stream(archive: Archive) -> Response {
    let Archive {
        digest,
        size_bytes,
        bytes,
    } = archive;
    let mut response = Body::from_stream(bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, ZSTD);
    headers.insert(header::CONTENT_LENGTH, size_bytes.into());
    if let Ok(tag) = HeaderValue::try_from(format!("\"{digest}\"")) {
        headers.insert(header::ETAG, tag);
    }
    let file = format!("attachment; filename=\"{digest}.tar.zst\"");
    if let Ok(file) = HeaderValue::try_from(file) {
        headers.insert(header::CONTENT_DISPOSITION, file);
    }
    response
}

/// The archive of a bundle: tar within zstd. Its `ETag` is the digest.
#[utoipa::path(
    get, path = "/projects/{project}/bundles/{bundle}/download",
    operation_id = "download_bundle", tag = "bundles",
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/zstd"),
        (status = 409, description = "The bundle was rejected: it has no archive", body = ErrorResponse)
    )
)]
pub(crate) async fn download(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, bundle)): Path<(ProjectId, BundleId)>,
) -> Result<Response, Problem> {
    Ok(stream(app.download_bundle(&call, project, bundle).await?))
}

/// The archive of a signed bundle that the node is ordered to run, was ordered to run before, or
/// reverts to if its rollout fails. Its `ETag` is the digest.
#[utoipa::path(
    get, path = "/nodes/{node}/bundles/{bundle}/archive", operation_id = "get_node_archive",
    tag = "nodes", responses(
        (status = 200, body = Vec<u8>, content_type = "application/zstd"),
        (status = 409, description = "The bundle was rejected or revoked", body = ErrorResponse)
    )
)]
pub(crate) async fn node_archive(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((node, bundle)): Path<(NodeId, BundleId)>,
) -> Result<Response, Problem> {
    Ok(stream(app.node_archive(&call, node, bundle).await?))
}

/// Verifies the stored bytes and the signature of a bundle.
#[utoipa::path(
    get, path = "/projects/{project}/bundles/{bundle}/verify", operation_id = "verify_bundle",
    tag = "bundles", responses(
        (status = 200, body = VerificationView),
        (status = 409, description = "The bundle was rejected: it has no archive", body = ErrorResponse)
    )
)]
pub(crate) async fn verify(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, bundle)): Path<(ProjectId, BundleId)>,
) -> Result<Json<VerificationView>, Problem> {
    Ok(Json(
        app.verify_bundle(&call, project, bundle).await?.into(),
    ))
}

/// The bill of materials of a bundle: `CycloneDX` 1.5.
#[utoipa::path(
    get, path = "/projects/{project}/bundles/{bundle}/sbom", operation_id = "get_bundle_sbom",
    tag = "bundles",
    responses(
        (status = 200, body = Value, content_type = "application/vnd.cyclonedx+json"),
        (status = 409, description = "The bundle was rejected: it has no archive", body = ErrorResponse)
    )
)]
pub(crate) async fn sbom(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, bundle)): Path<(ProjectId, BundleId)>,
) -> Result<Response, Problem> {
    let document = app.bundle_sbom(&call, project, bundle).await?;
    let mut response = Json(document).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, CYCLONE_DX);
    Ok(response)
}

/// Compares a bundle with an older one.
/// The result has the requests that another route or service answers, the effective settings, the files, and the risks.
#[utoipa::path(
    get, path = "/projects/{project}/bundles/{bundle}/diff", operation_id = "diff_bundle",
    tag = "bundles", params(DiffQuery), responses(
        (status = 200, body = DiffView),
        (status = 409, description = "One of them was rejected: it has no archive", body = ErrorResponse),
        (status = 422, description = "The older one is not of this project, or the current checks refuse it", body = ErrorResponse)
    )
)]
pub(crate) async fn diff(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, bundle)): Path<(ProjectId, BundleId)>,
    Query(DiffQuery { before }): Query<DiffQuery>,
) -> Result<Json<DiffView>, Problem> {
    let compared = app
        .compare_bundles(&call, project, bundle, BundleId(before))
        .await?;
    Ok(Json(compared.into()))
}
