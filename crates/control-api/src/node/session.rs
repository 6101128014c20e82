//! Routes for nodes: registration, tokens, heartbeats, orders, certificates, events.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::bundle::signing_key::web_key;
use crate::request::credential::check_again;
use crate::request::extract::{Body, Caller, Path, Query, if_none_match};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::ETAG;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use control_app::{App, Delivery, RegisteredNode, certificate_tag, desired_tag, metric};
use control_domain::Refusal;
use control_wire::{
    CertificateId, ChallengesRequest, DesiredState, EventsRequest, HeartbeatRequest,
    HeartbeatResponse, NodeCertificate, NodeId, ProjectId, RegisterRequest, RegisterResponse,
    TokenResponse,
};
use metrics::gauge;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use utoipa::IntoParams;

const MAX_WAIT_SECS: u64 = 30;

/// Maximum wait for a change.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WaitQuery {
    /// Seconds to wait while the state has the `ETag` in `If-None-Match`.
    #[param(minimum = 0, maximum = 30, default = 0)]
    wait: Option<u64>,
}

/// Guard of a long poll, which counts it in the metrics until it is dropped: the client may
/// disconnect at any time.
struct LongPoll;

impl LongPoll {
    fn begin() -> Self {
        gauge!(metric::LONG_POLLS).increment(1);
        Self
    }
}

impl Drop for LongPoll {
    fn drop(&mut self) {
        gauge!(metric::LONG_POLLS).decrement(1);
    }
}

/// Registers a node of a project.
#[utoipa::path(
    post, path = "/projects/{project}/nodes/register", operation_id = "register_node",
    tag = "node", request_body = RegisterRequest,
    responses((status = 201, body = RegisterResponse))
)]
pub(crate) async fn register(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(request): Body<RegisterRequest>,
) -> Result<Resource<RegisterResponse>, Problem> {
    let RegisteredNode {
        node,
        key,
        signing_keys,
    } = app.register_node(&call, project, request).await?;
    let response = RegisterResponse {
        node_id: node.id,
        node_key: key.reveal().to_owned(),
        project: node.tenant.project.ok_or(Refusal::NotFound)?,
        org: node.tenant.org,
        signing_keys: signing_keys.iter().map(web_key).collect(),
        heartbeat_interval_secs: app.heartbeat_interval.secs().into(),
    };
    let path = format!("/projects/{project}/nodes/{}", response.node_id);
    Ok(Resource::secret(1, response).at(&path))
}

/// Exchanges the node's key for a token of 12 hours.
#[utoipa::path(
    post, path = "/nodes/{node}/token", operation_id = "issue_node_token", tag = "node",
    responses((status = 200, body = TokenResponse))
)]
pub(crate) async fn token(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(node): Path<NodeId>,
) -> Result<Resource<TokenResponse>, Problem> {
    Ok(Resource::issued(app.issue_token(&call, node).await?))
}

/// Records a heartbeat. Heartbeats and events together may have 1 MiB in each heartbeat interval, which is two of the
/// largest heartbeats: more is answered 429, with the seconds to wait.
#[utoipa::path(
    post, path = "/nodes/{node}/heartbeat", operation_id = "send_heartbeat", tag = "node",
    request_body = HeartbeatRequest, responses((status = 200, body = HeartbeatResponse))
)]
pub(crate) async fn heartbeat(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(node): Path<NodeId>,
    Body(heartbeat_request): Body<HeartbeatRequest>,
) -> Result<Json<HeartbeatResponse>, Problem> {
    Ok(Json(app.heartbeat(&call, node, heartbeat_request).await?))
}

/// The order of the node. A long poll: waits for a change.
#[utoipa::path(
    get, path = "/nodes/{node}/desired", operation_id = "get_desired_state", tag = "node",
    params(WaitQuery), responses((status = 200, body = DesiredState))
)]
pub(crate) async fn desired(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(node): Path<NodeId>,
    Query(WaitQuery { wait }): Query<WaitQuery>,
    request: Parts,
) -> Result<Resource<DesiredState>, Problem> {
    let wait = wait.unwrap_or_default();
    if MAX_WAIT_SECS < wait {
        return Err(Problem::bad_query("wait: is not 0 to 30"));
    }
    let (known, wait) = (if_none_match(&request.headers), Duration::from_secs(wait));
    let _counted = (!wait.is_zero()).then(LongPoll::begin);
    let state = app.desired(&call, node, &known, wait).await?;
    check_again(&app, &call, &request).await?;
    let tag = desired_tag(&state);
    Ok(Resource::tagged(tag, state))
}

/// A certificate that a bundle of the node names, with its private key, which the node holds in memory. The `ETag`, in
/// quotes, is the SHA-256 of `chain_pem` in Base64-URL: a node sends that of the chain it has in `If-None-Match`.
#[utoipa::path(
    get, path = "/nodes/{node}/certificates/{certificate}",
    operation_id = "get_node_certificate", tag = "node",
    responses((status = 200, body = NodeCertificate))
)]
pub(crate) async fn certificate(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((node, certificate)): Path<(NodeId, CertificateId)>,
    request: Parts,
) -> Result<Response, Problem> {
    let known = if_none_match(&request.headers);
    let found = app.node_certificate(&call, node, certificate, &known);
    Ok(match found.await? {
        Delivery::New(found) => {
            let tag = certificate_tag(&found.chain_pem);
            Resource::issued(found).with_tag(tag).into_response()
        }
        Delivery::Known(tag) => {
            let fields = [(ETAG, format!("\"{tag}\""))];
            (StatusCode::NOT_MODIFIED, fields).into_response()
        }
    })
}

/// Notes the challenges of the desired state that the node answers, so that the authority may be notified. Unknown tokens
/// are ignored.
#[utoipa::path(
    post, path = "/nodes/{node}/challenges", operation_id = "confirm_challenges", tag = "node",
    request_body = ChallengesRequest, responses((status = 204))
)]
pub(crate) async fn challenges(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(node): Path<NodeId>,
    Body(request): Body<ChallengesRequest>,
) -> Result<StatusCode, Problem> {
    app.confirm_challenges(&call, node, &request.tokens).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stores events of the node. Counts as bytes of reports, like heartbeats.
#[utoipa::path(
    post, path = "/nodes/{node}/events", operation_id = "send_node_events", tag = "node",
    request_body = EventsRequest, responses((status = 204))
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(node): Path<NodeId>,
    Body(request): Body<EventsRequest>,
) -> Result<StatusCode, Problem> {
    app.add_node_events(&call, node, &request).await?;
    Ok(StatusCode::NO_CONTENT)
}
