//! Routes of webhooks.
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
    Webhook, WebhookDelivery, WebhookDeliveryState, WebhookEvent, WebhookSettings,
};
use control_wire::{ProjectId, WebhookDeliveryId, WebhookId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A receiver of a project's events, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookView {
    id: WebhookId,
    project: Option<ProjectId>,
    name: String,
    /// Address for `POST` requests.
    url: String,
    /// Events that it receives.
    events: Vec<WebhookEvent>,
    /// True if events are queued and sent.
    enabled: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<WebhookView> = &[
    ("created_at", SortBy::Id),
    ("name", SortBy::Text(SortColumn::Name, |view| &view.name)),
];

/// Filters and page of webhooks.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WebhookQuery {
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

/// Fields that the list of deliveries can be sorted by.
const DELIVERIES_SORTED: SortFields<WebhookDeliveryView> = &[("created_at", SortBy::Id)];

/// Page of the deliveries.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WebhookDeliveryQuery {
    /// Field to sort by, with `-` before it from the greatest: `created_at`.
    #[param(pattern = "^-?(created_at)$", example = "-created_at")]
    sort: Option<String>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// A webhook with its secret, which is shown this once.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookWithSecret {
    #[serde(flatten)]
    webhook: WebhookView,
    /// The key of its signatures: `whsec_` and 32 bytes in Base64. `webhook-signature` is `v1,` and the HMAC-SHA256,
    /// in Base64, of `webhook-id`, `webhook-timestamp` and the body, with dots between.
    secret: String,
}

/// The fields of a webhook that may be chosen.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookRequest {
    /// Unique in the project.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Address for `POST` requests: `https`, and no private address, unless the installation allows those.
    #[schema(max_length = 2000, example = "https://hooks.example.com/deploys")]
    url: String,
    /// Events that it receives, at least one.
    #[schema(min_items = 1)]
    events: Vec<WebhookEvent>,
    /// Queues and sends events; absent: true. The queue of a disabled webhook waits.
    #[serde(default = "yes")]
    enabled: bool,
}

/// One event for one receiver.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookDeliveryView {
    id: WebhookDeliveryId,
    /// The event; `webhook.test` for a requested test.
    event: String,
    state: WebhookDeliveryState,
    /// Number of attempts, at most 9 within about 8 hours.
    attempts: i64,
    /// Time of the next attempt; absent after the last one.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_at: Option<Timestamp>,
    /// Status of the last answer; absent without one.
    last_status: Option<u16>,
    /// Reason for the failure of the last attempt.
    last_error: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
    /// The body.
    #[schema(value_type = Object)]
    payload: Value,
}

fn yes() -> bool {
    true
}

impl From<Webhook> for WebhookView {
    fn from(webhook: Webhook) -> Self {
        let Webhook {
            id,
            tenant,
            name,
            url,
            events,
            enabled,
            secret: _,
            created_at,
        } = webhook;
        Self {
            id,
            project: tenant.project,
            name: name.to_string(),
            url,
            events,
            enabled,
            created_at,
        }
    }
}

impl From<WebhookRequest> for WebhookSettings {
    fn from(request: WebhookRequest) -> Self {
        let WebhookRequest {
            name,
            url,
            events,
            enabled,
        } = request;
        Self {
            name,
            url,
            events,
            enabled,
        }
    }
}

impl From<WebhookDelivery> for WebhookDeliveryView {
    fn from(delivery: WebhookDelivery) -> Self {
        let WebhookDelivery {
            id,
            webhook: _,
            event,
            payload,
            state,
            attempts,
            next_at,
            last_status,
            last_error,
            created_at,
            ended_at,
        } = delivery;
        Self {
            id,
            event,
            state,
            attempts,
            next_at: (state == WebhookDeliveryState::Pending).then_some(next_at),
            last_status,
            last_error,
            created_at,
            ended_at,
            payload: serde_json::from_str(&payload).unwrap_or_default(),
        }
    }
}

/// The webhooks of a project.
#[utoipa::path(
    get, path = "/projects/{project}/webhooks", operation_id = "list_webhooks", tag = "webhooks",
    params(WebhookQuery), responses((status = 200, body = List<WebhookView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<WebhookQuery>,
) -> Result<Json<List<WebhookView>>, Problem> {
    let WebhookQuery {
        name,
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let filter = page.filter(name);
    let found = app.webhooks(&call, project, &filter, page.page).await?;
    let found = found.into_iter();
    let views = found.map(|found| WebhookView::from(found.value)).collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Creates a webhook. Events from now on are sent to it, signed as Standard Webhooks are.
#[utoipa::path(
    post, path = "/projects/{project}/webhooks", operation_id = "create_webhook", tag = "webhooks",
    request_body = WebhookRequest, responses((status = 201, body = WebhookWithSecret))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Body(request): Body<WebhookRequest>,
) -> Result<Resource<WebhookWithSecret>, Problem> {
    let made = app.create_webhook(&call, project, request.into()).await?;
    let (webhook, secret) = made;
    let path = format!("/projects/{project}/webhooks/{}", webhook.value.id);
    let view = WebhookWithSecret {
        webhook: webhook.value.into(),
        secret: secret.to_string(),
    };
    Ok(Resource::secret(webhook.version, view).at(&path))
}

/// One webhook.
#[utoipa::path(
    get, path = "/projects/{project}/webhooks/{webhook}", operation_id = "get_webhook",
    tag = "webhooks", responses((status = 200, body = WebhookView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, webhook)): Path<(ProjectId, WebhookId)>,
) -> Result<Resource<WebhookView>, Problem> {
    let found = app.webhook(&call, project, webhook).await?;
    Ok(Resource::found(found.version, found.value.into()))
}

/// Replaces the settings of a webhook; its secret and its queue are kept.
#[utoipa::path(
    put, path = "/projects/{project}/webhooks/{webhook}", operation_id = "update_webhook",
    tag = "webhooks", request_body = WebhookRequest,
    responses((status = 200, body = WebhookView))
)]
pub(crate) async fn update(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, webhook)): Path<(ProjectId, WebhookId)>,
    Body(request): Body<WebhookRequest>,
) -> Result<Resource<WebhookView>, Problem> {
    let changed = app
        .update_webhook(&call, project, webhook, request.into())
        .await?;
    Ok(Resource::found(changed.version, changed.value.into()))
}

/// Deletes a webhook with its queue.
#[utoipa::path(
    delete, path = "/projects/{project}/webhooks/{webhook}", operation_id = "delete_webhook",
    tag = "webhooks", responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, webhook)): Path<(ProjectId, WebhookId)>,
) -> Result<StatusCode, Problem> {
    app.delete_webhook(&call, project, webhook).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Replaces the secret of a webhook. All later attempts are signed with the new one.
#[utoipa::path(
    post, path = "/projects/{project}/webhooks/{webhook}/rotate-secret",
    operation_id = "rotate_webhook_secret", tag = "webhooks",
    responses((status = 201, body = WebhookWithSecret))
)]
pub(crate) async fn rotate_secret(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, webhook)): Path<(ProjectId, WebhookId)>,
) -> Result<Resource<WebhookWithSecret>, Problem> {
    let (webhook, secret) = app.rotate_webhook_secret(&call, project, webhook).await?;
    let view = WebhookWithSecret {
        webhook: webhook.value.into(),
        secret: secret.to_string(),
    };
    Ok(Resource::secret(webhook.version, view))
}

/// Queues an event `webhook.test` for a webhook.
#[utoipa::path(
    post, path = "/projects/{project}/webhooks/{webhook}/test", operation_id = "test_webhook",
    tag = "webhooks", responses((status = 202, body = WebhookDeliveryView))
)]
pub(crate) async fn test(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, webhook)): Path<(ProjectId, WebhookId)>,
) -> Result<(StatusCode, Json<WebhookDeliveryView>), Problem> {
    let delivery = app.test_webhook(&call, project, webhook).await?;
    Ok((StatusCode::ACCEPTED, Json(delivery.into())))
}

/// The queue of a webhook, at most 1000 events, and the newest 100 deliveries that ended; the newest first.
#[utoipa::path(
    get, path = "/projects/{project}/webhooks/{webhook}/deliveries",
    operation_id = "list_webhook_deliveries", tag = "webhooks",
    params(WebhookDeliveryQuery), responses((status = 200, body = List<WebhookDeliveryView>))
)]
pub(crate) async fn deliveries(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, webhook)): Path<(ProjectId, WebhookId)>,
    Query(query): Query<WebhookDeliveryQuery>,
) -> Result<Json<List<WebhookDeliveryView>>, Problem> {
    let WebhookDeliveryQuery {
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(DELIVERIES_SORTED, PageOrder::Newest)?;
    let found = app
        .webhook_deliveries(&call, project, webhook, page.page)
        .await?;
    let views = found.into_iter().map(WebhookDeliveryView::from).collect();
    Ok(page.list(views, |view| view.id.0))
}
