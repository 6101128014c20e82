//! Routes of certificates. No response contains a private key.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, OrderName, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control_app::{App, CertificateFilter, NewCertificate, PageOrder, SortColumn};
use control_domain::{Certificate, CertificateFacts, CertificateState};
use control_wire::{CertificateId, ProjectId, rfc3339};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use zeroize::Zeroizing;

/// A certificate, without its private key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CertificateView {
    id: CertificateId,
    name: String,
    state: CertificateState,
    /// The hosts that it covers.
    hosts: Vec<String>,
    /// The first moment at which all of the chain holds.
    #[schema(value_type = String, format = DateTime)]
    not_before: Timestamp,
    /// The last moment at which all of the chain holds.
    #[schema(value_type = String, format = DateTime)]
    not_after: Timestamp,
    /// SHA-256 of the leaf in hexadecimal.
    fingerprint: String,
    /// The chain, leaf first.
    chain_pem: String,
    /// Labels that a node needs to get the private key; empty permits every node of the project.
    node_labels: BTreeMap<String, String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// A certificate with its private key, which is sealed and never shown again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CertificateRequest {
    /// Unique in the project.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// The chain in PEM, leaf first; each certificate is signed by the next one.
    chain_pem: String,
    /// The private key of the leaf in PEM, not encrypted.
    private_key_pem: String,
    /// Labels that a node needs to get the private key. Absent, they are unchanged; a new
    /// certificate has none, which permits every node of the project.
    node_labels: Option<BTreeMap<String, String>>,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<CertificateView> = &[
    ("created_at", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
    (
        "not_after",
        SortBy::Number(SortColumn::ExpiresAt, |view| {
            view.not_after.as_millisecond()
        }),
    ),
];

/// Filters and page of certificates.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CertificateQuery {
    /// Only items of this name, or of names that begin so if it ends in `*`.
    name: Option<String>,
    /// Only certificates that end before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "rfc3339::optional")]
    expires_before: Option<Timestamp>,
    /// Field to sort by, with `-` before it from the greatest: `created_at`, `name`, `not_after`. Excludes `order`.
    #[param(pattern = "^-?(created_at|name|not_after)$", example = "-not_after")]
    sort: Option<String>,
    /// Order by creation; the oldest first if absent.
    #[param(inline)]
    order: Option<OrderName>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

impl CertificateView {
    fn new(certificate: &Certificate, now: Timestamp) -> Self {
        let state = certificate.state(now);
        let Certificate {
            id,
            tenant: _,
            name,
            facts,
            chain_pem,
            secret: _,
            node_labels,
            created_at,
        } = certificate;
        let CertificateFacts {
            hosts,
            not_before,
            not_after,
            fingerprint,
        } = facts.clone();
        Self {
            id: *id,
            name: name.to_string(),
            state,
            hosts,
            not_before,
            not_after,
            fingerprint,
            chain_pem: chain_pem.clone(),
            node_labels: node_labels.pairs().clone(),
            created_at: *created_at,
        }
    }
}

impl From<CertificateRequest> for NewCertificate {
    fn from(request: CertificateRequest) -> Self {
        let CertificateRequest {
            name,
            chain_pem,
            private_key_pem,
            node_labels,
        } = request;
        Self {
            name,
            chain_pem,
            private_key_pem: Zeroizing::new(private_key_pem),
            node_labels,
        }
    }
}

/// The certificates of a project.
#[utoipa::path(
    get, path = "/projects/{project}/certificates", operation_id = "list_certificates",
    tag = "certificates", params(CertificateQuery), responses((status = 200, body = List<CertificateView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<CertificateQuery>,
) -> Result<Json<List<CertificateView>>, Problem> {
    let CertificateQuery {
        name,
        expires_before,
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
    let page = query.page(SORTED, PageOrder::Oldest)?;
    let filter = CertificateFilter {
        name,
        expires_before,
        sort: page.sort.clone(),
    };
    let found = app.certificates(&call, project, &filter, page.page).await?;
    let views = found
        .iter()
        .map(|found| CertificateView::new(&found.value, call.now));
    let views = views.collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Creates a certificate. Chain, key and time are checked.
#[utoipa::path(
    post, path = "/projects/{project}/certificates", operation_id = "create_certificate",
    tag = "certificates", request_body = CertificateRequest,
    responses((status = 201, body = CertificateView))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(request): Body<CertificateRequest>,
) -> Result<Resource<CertificateView>, Problem> {
    let made = app
        .create_certificate(&call, project, request.into())
        .await?;
    let view = CertificateView::new(&made.value, call.now);
    let path = format!("/projects/{project}/certificates/{}", made.value.id);
    Ok(Resource::created(made.version, view).at(&path))
}

/// One certificate.
#[utoipa::path(
    get, path = "/projects/{project}/certificates/{certificate}",
    operation_id = "get_certificate", tag = "certificates",
    responses((status = 200, body = CertificateView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, certificate)): Path<(ProjectId, CertificateId)>,
) -> Result<Resource<CertificateView>, Problem> {
    let found = app.certificate(&call, project, certificate).await?;
    let view = CertificateView::new(&found.value, call.now);
    Ok(Resource::composed(found.version, view))
}

/// Replaces a certificate and its key, as at a renewal. The former key is deleted.
#[utoipa::path(
    put, path = "/projects/{project}/certificates/{certificate}",
    operation_id = "update_certificate", tag = "certificates", request_body = CertificateRequest,
    responses((status = 200, body = CertificateView))
)]
pub(crate) async fn update(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, certificate)): Path<(ProjectId, CertificateId)>,
    Body(request): Body<CertificateRequest>,
) -> Result<Resource<CertificateView>, Problem> {
    let changed = app
        .update_certificate(&call, project, certificate, request.into())
        .await?;
    let view = CertificateView::new(&changed.value, call.now);
    Ok(Resource::found(changed.version, view))
}

/// Deletes a certificate that neither a service nor a bundle of a node uses, and its key.
#[utoipa::path(
    delete, path = "/projects/{project}/certificates/{certificate}",
    operation_id = "delete_certificate", tag = "certificates", responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, certificate)): Path<(ProjectId, CertificateId)>,
) -> Result<StatusCode, Problem> {
    app.delete_certificate(&call, project, certificate).await?;
    Ok(StatusCode::NO_CONTENT)
}
