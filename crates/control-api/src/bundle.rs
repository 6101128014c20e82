//! Routes of bundles. Archives are never part of these responses, and are downloaded separately.
#![expect(unused_qualifications, reason = "the path macro writes them")]

pub(crate) mod archive;
pub(crate) mod explanation;
pub(crate) mod preview;
pub(crate) mod replay;
pub(crate) mod signing_key;

use crate::names::RenameRequest;
use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, OrderName, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use control_app::{
    App, BundleFilter, BundleSource, Diagnostic, Files, ListenAddresses, NewBundle, PageOrder,
    SortColumn,
};
use control_domain::{Bundle, BundleState};
use control_wire::{BundleId, ErrorResponse, NodeId, Order, ProjectId, SigningKeyId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Maximum size of a bundle's files as JSON, with room for escapes and Base64.
pub(crate) const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

/// A bundle, without its bytes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BundleSummary {
    id: BundleId,
    name: String,
    state: BundleState,
    /// SHA-256 of the archive in Base64-URL; absent if the bundle was rejected.
    digest: Option<String>,
    /// Bytes of the archive.
    size_bytes: Option<u64>,
    /// The key that signed.
    kid: Option<SigningKeyId>,
    /// Ed25519 over the digest, in Base64-URL.
    signature: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    signed_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Timestamp>,
}

/// A bundle with the diagnostics of its check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BundleView {
    #[serde(flatten)]
    summary: BundleSummary,
    /// Errors and warnings, in the order of the files: at most 100.
    diagnostics: Vec<DiagnosticView>,
}

/// A fault of a configuration, or a warning about it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DiagnosticView {
    /// The kind, such as `unknown-setting`: see the reference of diagnostics.
    code: String,
    /// `error` or `warning`.
    severity: String,
    /// The fault, in one sentence.
    message: String,
    /// The file.
    file: String,
    /// Counted from 1.
    line: u32,
    /// In characters, counted from 1.
    column: u32,
    /// Length of the text that it is about, in bytes.
    length: u32,
    /// Label of that text; may be empty.
    label: String,
    /// A suggested fix.
    help: Option<String>,
}

/// A new bundle: from files, or from the services of the project.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewBundleRequest {
    /// Name for its purpose.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Texts by name; the configuration begins in `proxy.kdl`.
    files: Option<BTreeMap<String, String>>,
    /// Binary files, such as images, in Base64; only with `files`.
    #[serde(default)]
    assets: BTreeMap<String, String>,
    /// Listeners for the project's services; only without `files`.
    services: Option<ServicesRequest>,
}

/// Listeners for the project's services.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServicesRequest {
    /// The address to listen on without TLS.
    #[schema(example = "0.0.0.0:80")]
    http: Option<String>,
    /// The address to listen on with TLS; needed as soon as a service has a certificate.
    #[schema(example = "0.0.0.0:443")]
    https: Option<String>,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<BundleSummary> = &[
    ("created_at", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
];

/// Filters and page of bundles.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BundleQuery {
    /// Only bundles in this state.
    state: Option<BundleState>,
    /// Only items of this name, or of names that begin so if it ends in `*`.
    name: Option<String>,
    /// Field to sort by, with `-` before it from the greatest: `created_at`, `name`. Excludes `order`.
    #[param(pattern = "^-?(created_at|name)$", example = "-name")]
    sort: Option<String>,
    /// Order by creation; the newest first if absent.
    #[param(inline)]
    order: Option<OrderName>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The nodes to run a bundle.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AssignRequest {
    /// Nodes of the project; a rollout moves more of them.
    #[schema(min_items = 1, max_items = 200)]
    nodes: Vec<NodeId>,
}

/// The orders that were created.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AssignResponse {
    /// One for each node.
    orders: Vec<Order>,
}

impl From<&Bundle> for BundleSummary {
    fn from(bundle: &Bundle) -> Self {
        let Bundle {
            id,
            tenant: _,
            name,
            state,
            archive,
            signature,
            diagnostics: _,
            warnings: _,
            created_at,
            revoked_at,
        } = bundle;
        let archive = archive.as_ref();
        let signature = signature.as_ref();
        Self {
            id: *id,
            name: name.to_string(),
            state: *state,
            digest: archive.map(|archive| archive.digest.clone()),
            size_bytes: archive.map(|archive| archive.size_bytes),
            kid: signature.map(|signature| signature.kid),
            signature: signature.map(|signature| signature.text.clone()),
            created_at: *created_at,
            signed_at: signature.map(|signature| signature.signed_at),
            revoked_at: *revoked_at,
        }
    }
}

impl From<&Bundle> for BundleView {
    fn from(bundle: &Bundle) -> Self {
        let found = serde_json::from_str::<Vec<Diagnostic>>(&bundle.diagnostics);
        let diagnostics = found.unwrap_or_default().into_iter();
        Self {
            summary: BundleSummary::from(bundle),
            diagnostics: diagnostics.map(DiagnosticView::from).collect(),
        }
    }
}

impl From<Diagnostic> for DiagnosticView {
    fn from(diagnostic: Diagnostic) -> Self {
        let Diagnostic {
            code,
            severity,
            message,
            file,
            line,
            column,
            length,
            label,
            help,
        } = diagnostic;
        Self {
            code,
            severity,
            message,
            file,
            line,
            column,
            length,
            label,
            help,
        }
    }
}

impl NewBundleRequest {
    fn read(self) -> Result<NewBundle, Problem> {
        let Self {
            name,
            files,
            assets,
            services,
        } = self;
        let source = source(files, assets, services)?;
        Ok(NewBundle { name, source })
    }
}

/// The bundle's source; exactly one of the two fields must be present.
fn source(
    files: Option<BTreeMap<String, String>>,
    assets: BTreeMap<String, String>,
    services: Option<ServicesRequest>,
) -> Result<BundleSource, Problem> {
    match (files, services) {
        (Some(files), None) => Ok(BundleSource::Files(all_files(files, assets)?)),
        (None, Some(services)) if assets.is_empty() => {
            let ServicesRequest { http, https } = services;
            Ok(BundleSource::Services(ListenAddresses { http, https }))
        }
        (None, Some(_)) => Err(Problem::invalid("assets", "requires `files`")),
        (Some(_), Some(_)) | (None, None) => Err(Problem::invalid(
            "files",
            "either `files` or `services` is needed",
        )),
    }
}

fn all_files(
    texts: BTreeMap<String, String>,
    assets: BTreeMap<String, String>,
) -> Result<Files, Problem> {
    let texts = texts.into_iter();
    let mut files: Files = texts
        .map(|(name, text)| (name, text.into_bytes()))
        .collect();
    for (name, text) in assets {
        let bytes = STANDARD.decode(text);
        let bytes =
            bytes.map_err(|_| Problem::invalid("assets", "has a value that is not Base64"))?;
        if files.insert(name, bytes).is_some() {
            return Err(Problem::invalid("assets", "has a name that is in `files`"));
        }
    }
    Ok(files)
}

/// The bundles of a project.
#[utoipa::path(
    get, path = "/projects/{project}/bundles", operation_id = "list_bundles", tag = "bundles",
    params(BundleQuery), responses((status = 200, body = List<BundleSummary>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<BundleQuery>,
) -> Result<Json<List<BundleSummary>>, Problem> {
    let BundleQuery {
        state,
        name,
        sort,
        order,
        limit,
        cursor,
    } = query;
    let query = PageQuery {
        sort,
        order,
        limit,
        cursor,
    };
    let page = query.page(SORTED, PageOrder::Newest)?;
    let sort = page.sort.clone();
    let filter = BundleFilter { state, name, sort };
    let found = app.bundles(&call, project, &filter, page.page).await?;
    let views = found.iter().map(|found| BundleSummary::from(&found.value));
    let views = views.collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Creates a bundle: checks its files as a proxy would, and signs or rejects them.
/// Both are answered with 201; a rejected bundle has diagnostics.
#[utoipa::path(
    post, path = "/projects/{project}/bundles", operation_id = "create_bundle", tag = "bundles",
    request_body = NewBundleRequest, responses(
        (status = 201, body = BundleView),
        (status = 503, description = "The memory for uploads is in use, the caller already uploads two bundles, the database is unreachable, or the program stops", body = ErrorResponse)
    )
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(request): Body<NewBundleRequest>,
) -> Result<Resource<BundleView>, Problem> {
    let made = app.create_bundle(&call, project, request.read()?).await?;
    let view = BundleView::from(&made.value);
    let path = format!("/projects/{project}/bundles/{}", made.value.id);
    Ok(Resource::created(made.version, view).at(&path))
}

/// One bundle.
#[utoipa::path(
    get, path = "/projects/{project}/bundles/{bundle}", operation_id = "get_bundle",
    tag = "bundles", responses((status = 200, body = BundleView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, bundle)): Path<(ProjectId, BundleId)>,
) -> Result<Resource<BundleView>, Problem> {
    let found = app.bundle(&call, project, bundle).await?;
    let view = BundleView::from(&found.value);
    Ok(Resource::found(found.version, view))
}

/// Revokes a signed bundle.
/// No node is ordered to run it; nodes with such an order are ordered to run the previous bundle.
#[utoipa::path(
    post, path = "/projects/{project}/bundles/{bundle}/revoke", operation_id = "revoke_bundle",
    tag = "bundles", responses((status = 200, body = BundleView))
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, bundle)): Path<(ProjectId, BundleId)>,
) -> Result<Resource<BundleView>, Problem> {
    let changed = app.revoke_bundle(&call, project, bundle).await?;
    let view = BundleView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}

/// Orders nodes of the project to run a signed bundle. The nodes report success or failure by heartbeats.
#[utoipa::path(
    post, path = "/projects/{project}/bundles/{bundle}/assign", operation_id = "assign_bundle",
    tag = "bundles", request_body = AssignRequest,
    responses((status = 200, body = AssignResponse))
)]
pub(crate) async fn assign(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, bundle)): Path<(ProjectId, BundleId)>,
    Body(AssignRequest { nodes }): Body<AssignRequest>,
) -> Result<Json<AssignResponse>, Problem> {
    let orders = app.assign_bundle(&call, project, bundle, &nodes).await?;
    Ok(Json(AssignResponse { orders }))
}

/// Deletes a bundle that no node and no rollout needs. Its archive follows within a minute.
#[utoipa::path(
    delete, path = "/projects/{project}/bundles/{bundle}", operation_id = "delete_bundle",
    tag = "bundles", responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, bundle)): Path<(ProjectId, BundleId)>,
) -> Result<StatusCode, Problem> {
    app.delete_bundle(&call, project, bundle).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Renames a bundle.
#[utoipa::path(
    patch, path = "/projects/{project}/bundles/{bundle}", operation_id = "update_bundle",
    tag = "bundles", request_body = RenameRequest, responses((status = 200, body = BundleView))
)]
pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, bundle)): Path<(ProjectId, BundleId)>,
    Body(RenameRequest { name }): Body<RenameRequest>,
) -> Result<Resource<BundleView>, Problem> {
    let changed = app.rename_bundle(&call, project, bundle, &name).await?;
    let view = BundleView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}
