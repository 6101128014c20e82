//! Routes of managed certificates, which are obtained and renewed by ACME.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, PageOrder, SortColumn};
use control_domain::{
    CertificateKeyType, IssuanceError, IssuanceProgress, ManagedCertificate,
    ManagedCertificateSettings, ManagedCertificateState,
};
use control_wire::{CertificateId, ManagedCertificateId, ProjectId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A certificate that the control plane obtains by ACME and renews.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ManagedCertificateView {
    id: ManagedCertificateId,
    name: String,
    state: ManagedCertificateState,
    /// Hosts of the certificate.
    hosts: Vec<String>,
    /// URL of the authority's directory.
    directory: String,
    /// Address for the authority's notices.
    email: String,
    key_type: CertificateKeyType,
    /// Labels that a node needs to get the private key; empty permits every node of the project.
    node_labels: BTreeMap<String, String>,
    /// The certificate, for services and bundles; absent before the first was issued.
    certificate: Option<CertificateId>,
    /// Time of the next attempt, or of the renewal.
    #[schema(value_type = String, format = DateTime)]
    next_at: Timestamp,
    /// Attempts that failed since the last success.
    failures: u32,
    /// The last failure; absent since a success.
    error: Option<IssuanceErrorView>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// A failed attempt to obtain a certificate.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IssuanceErrorView {
    /// The authority's problem type (RFC 8555, 6.7), or `unreachable`, `timed_out`, `bad_account`, `bad_roots`, `key`,
    /// `not_offered`, `bad_certificate`, `not_permitted`, `not_served`, `not_confirmed`, `rate`, `name_taken`,
    /// `internal`.
    kind: String,
    /// The explanation, in the authority's own words if it refused.
    message: String,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
}

/// The settings of a managed certificate.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManagedCertificateRequest {
    /// Unique in the project, also among certificates.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// DNS names without wildcards. Nodes of the project serve each of them without TLS.
    #[schema(min_items = 1, max_items = 25, example = json!(["shop.example.com"]))]
    hosts: Vec<String>,
    /// URL of the directory of an authority that the installation permits.
    #[schema(example = "https://acme-v02.api.letsencrypt.org/directory")]
    directory: String,
    /// Address for the authority's notices.
    #[schema(max_length = 254)]
    email: String,
    /// True if the terms of the authority are agreed to.
    terms_agreed: bool,
    /// Kind of the certificate's key; absent: `ecdsa-p256`.
    #[serde(default = "ecdsa")]
    key_type: CertificateKeyType,
    /// Labels that a node needs to get the private key; absent: none, which permits every node of the project.
    #[serde(default)]
    node_labels: BTreeMap<String, String>,
}

fn ecdsa() -> CertificateKeyType {
    CertificateKeyType::EcdsaP256
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<ManagedCertificateView> = &[
    ("created_at", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
];

/// Filters and page of managed certificates.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ManagedCertificateQuery {
    /// Only items of this name, or of names that begin so if it ends in `*`.
    name: Option<String>,
    /// Field to sort by, with `-` before it from the greatest: `created_at`, `name`.
    #[param(pattern = "^-?(created_at|name)$", example = "-name")]
    sort: Option<String>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

impl ManagedCertificateView {
    fn new(value: ManagedCertificate, now: Timestamp) -> Self {
        let state = value.state(now);
        let ManagedCertificate {
            id,
            tenant: _,
            name,
            hosts,
            directory,
            email,
            key_type,
            node_labels,
            certificate,
            progress,
            created_at,
        } = value;
        let IssuanceProgress {
            order_url: _,
            order_secret: _,
            next_at,
            failures,
            error,
            window: _, // It decides `next_at`.
            window_ask_at: _,
        } = progress;
        Self {
            id,
            name: name.to_string(),
            state,
            hosts,
            directory,
            email: email.as_str().to_owned(),
            key_type,
            node_labels: node_labels.pairs().clone(),
            certificate,
            next_at,
            failures,
            error: error.map(|IssuanceError { kind, message, at }| IssuanceErrorView {
                kind,
                message,
                at,
            }),
            created_at,
        }
    }
}

impl From<ManagedCertificateRequest> for ManagedCertificateSettings {
    fn from(request: ManagedCertificateRequest) -> Self {
        let ManagedCertificateRequest {
            name,
            hosts,
            directory,
            email,
            terms_agreed,
            key_type,
            node_labels,
        } = request;
        Self {
            name,
            hosts,
            directory,
            email,
            terms_agreed,
            key_type,
            node_labels,
        }
    }
}

/// The managed certificates of a project.
#[utoipa::path(
    get, path = "/projects/{project}/managed-certificates", operation_id = "list_managed_certificates",
    tag = "managed-certificates", params(ManagedCertificateQuery),
    responses((status = 200, body = List<ManagedCertificateView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<ManagedCertificateQuery>,
) -> Result<Json<List<ManagedCertificateView>>, Problem> {
    let ManagedCertificateQuery {
        name,
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let filter = page.filter(name);
    let found = app.managed_certificates(&call, project, &filter, page.page);
    let found = found.await?.into_iter();
    let views = found.map(|found| ManagedCertificateView::new(found.value, call.now));
    let views = views.collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Creates a managed certificate. The first order begins within seconds; nodes of the project answer the authority.
#[utoipa::path(
    post, path = "/projects/{project}/managed-certificates", operation_id = "create_managed_certificate",
    tag = "managed-certificates", request_body = ManagedCertificateRequest,
    responses((status = 201, body = ManagedCertificateView))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(request): Body<ManagedCertificateRequest>,
) -> Result<Resource<ManagedCertificateView>, Problem> {
    let made = app
        .create_managed_certificate(&call, project, request.into())
        .await?;
    let path = format!("/projects/{project}/managed-certificates/{}", made.value.id);
    let view = ManagedCertificateView::new(made.value, call.now);
    Ok(Resource::created(made.version, view).at(&path))
}

/// One managed certificate. Its `ETag` begins with the version of the settings, and changes with the state as well.
#[utoipa::path(
    get, path = "/projects/{project}/managed-certificates/{managed_certificate}",
    operation_id = "get_managed_certificate", tag = "managed-certificates",
    responses((status = 200, body = ManagedCertificateView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, id)): Path<(ProjectId, ManagedCertificateId)>,
) -> Result<Resource<ManagedCertificateView>, Problem> {
    let found = app.managed_certificate(&call, project, id).await?;
    let view = ManagedCertificateView::new(found.value, call.now);
    Ok(Resource::composed(found.version, view))
}

/// Replaces the settings. Other hosts, another authority or kind of key are ordered at once; the certificate is kept
/// until then.
#[utoipa::path(
    put, path = "/projects/{project}/managed-certificates/{managed_certificate}",
    operation_id = "update_managed_certificate", tag = "managed-certificates",
    request_body = ManagedCertificateRequest,
    responses((status = 200, body = ManagedCertificateView))
)]
pub(crate) async fn update(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, id)): Path<(ProjectId, ManagedCertificateId)>,
    Body(request): Body<ManagedCertificateRequest>,
) -> Result<Resource<ManagedCertificateView>, Problem> {
    let changed = app
        .update_managed_certificate(&call, project, id, request.into())
        .await?;
    let view = ManagedCertificateView::new(changed.value, call.now);
    Ok(Resource::found(changed.version, view))
}

/// Makes an order due at once, such as after a repair. The limits of the authority count every order.
#[utoipa::path(
    post, path = "/projects/{project}/managed-certificates/{managed_certificate}/renew",
    operation_id = "renew_managed_certificate", tag = "managed-certificates",
    responses((status = 200, body = ManagedCertificateView))
)]
pub(crate) async fn renew(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, id)): Path<(ProjectId, ManagedCertificateId)>,
) -> Result<Resource<ManagedCertificateView>, Problem> {
    let due = app.renew_managed_certificate(&call, project, id).await?;
    let view = ManagedCertificateView::new(due.value, call.now);
    Ok(Resource::found(due.version, view))
}

/// Deletes a managed certificate. The certificate that it obtained is kept, and no longer renewed.
#[utoipa::path(
    delete, path = "/projects/{project}/managed-certificates/{managed_certificate}",
    operation_id = "delete_managed_certificate", tag = "managed-certificates",
    responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, id)): Path<(ProjectId, ManagedCertificateId)>,
) -> Result<StatusCode, Problem> {
    app.delete_managed_certificate(&call, project, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
