//! Routes of signing keys.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::request::extract::{Caller, Path, Query};
use crate::request::page::{List, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use control_app::{App, PageOrder, Versioned};
use control_domain::{SigningKey, SigningKeyState};
use control_wire::{JsonWebKey, JsonWebKeySet, OrgId, SigningKeyId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A signing key, without its private half.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SigningKeyView {
    /// `kid` in tokens and orders.
    id: SigningKeyId,
    org: OrgId,
    state: SigningKeyState,
    /// Ed25519: 32 bytes in Base64-URL.
    public_key: String,
    /// The key that signed for this one; absent for a first key.
    endorsed_by: Option<SigningKeyId>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Time of deactivation; signatures by the key are invalid since then.
    #[schema(value_type = Option<String>, format = DateTime)]
    deactivated_at: Option<Timestamp>,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<SigningKeyView> = &[("created_at", SortBy::Id)];

/// Which page of the signing keys.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SigningKeyQuery {
    /// Field to sort by, with `-` before it from the greatest: `created_at`.
    #[param(pattern = "^-?(created_at)$", example = "-created_at")]
    sort: Option<String>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

impl From<&SigningKey> for SigningKeyView {
    fn from(key: &SigningKey) -> Self {
        let SigningKey {
            id,
            org,
            state,
            public_key,
            secret: _,
            endorsement,
            created_at,
            deactivated_at,
        } = key;
        Self {
            id: *id,
            org: *org,
            state: *state,
            public_key: public_key.as_str().to_owned(),
            endorsed_by: endorsement.as_ref().map(|(by, _)| *by),
            created_at: *created_at,
            deactivated_at: *deactivated_at,
        }
    }
}

/// The public half of a key as a JSON Web Key, for nodes and verifiers.
pub(crate) fn web_key(key: &Versioned<SigningKey>) -> JsonWebKey {
    let key = &key.value;
    let public = JsonWebKey::ed25519(key.id, key.public_key.as_str().to_owned());
    let (endorsed_by, endorsement) = key.endorsement.clone().unzip();
    JsonWebKey {
        endorsed_by,
        endorsement,
        ..public
    }
}

/// The signing keys of an organization.
#[utoipa::path(
    get, path = "/orgs/{org}/signing-keys", operation_id = "list_signing_keys",
    tag = "signing-keys", params(SigningKeyQuery),
    responses((status = 200, body = List<SigningKeyView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Query(query): Query<SigningKeyQuery>,
) -> Result<Json<List<SigningKeyView>>, Problem> {
    let SigningKeyQuery {
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let found = app.signing_keys(&call, org, page.page).await?;
    let views = found.iter().map(|key| SigningKeyView::from(&key.value));
    let views = views.collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Creates a signing key, which is published now and signs after the next rotation.
#[utoipa::path(
    post, path = "/orgs/{org}/signing-keys", operation_id = "create_signing_key",
    tag = "signing-keys", responses((status = 201, body = SigningKeyView))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
) -> Result<Resource<SigningKeyView>, Problem> {
    let made = app.create_signing_key(&call, org).await?;
    let view = SigningKeyView::from(&made.value);
    Ok(Resource::created(made.version, view))
}

/// Lets the key that waits sign, or a new one; the key before still verifies.
#[utoipa::path(
    post, path = "/orgs/{org}/signing-keys/rotate", operation_id = "rotate_signing_key",
    tag = "signing-keys", responses((status = 200, body = SigningKeyView))
)]
pub(crate) async fn rotate(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
) -> Result<Resource<SigningKeyView>, Problem> {
    let changed = app.rotate_signing_key(&call, org).await?;
    let view = SigningKeyView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}

/// Rejects signatures of a retired key from now on.
#[utoipa::path(
    post, path = "/orgs/{org}/signing-keys/{signing_key}/deactivate",
    operation_id = "deactivate_signing_key", tag = "signing-keys",
    responses((status = 200, body = SigningKeyView))
)]
pub(crate) async fn deactivate(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((org, key)): Path<(OrgId, SigningKeyId)>,
) -> Result<Resource<SigningKeyView>, Problem> {
    let changed = app.deactivate_signing_key(&call, org, key).await?;
    let view = SigningKeyView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}

/// The public keys that verify tokens and orders of an organization.
#[utoipa::path(
    get, path = "/orgs/{org}/jwks.json", operation_id = "get_jwks", tag = "signing-keys",
    responses((status = 200, body = JsonWebKeySet))
)]
pub(crate) async fn jwks(
    State(app): State<Arc<App>>,
    Path(org): Path<OrgId>,
) -> Result<Json<JsonWebKeySet>, Problem> {
    let keys = app.verifying_keys(org).await?;
    let ended = app.ended_keys(org).await?;
    Ok(Json(JsonWebKeySet {
        keys: keys.iter().map(web_key).collect(),
        ended: ended.iter().map(web_key).collect(),
    }))
}
