//! Webhook deliveries: events are queued from the audit log, sent, and retried.
//!
//! The audit log serves as outbox: the transaction that moves the cursor past an entry also queues
//! its event, so each event is queued exactly once, even across crashes.

use crate::app::App;
use crate::error::Error;
use crate::metric;
use control_auth::{SealError, WebhookKey};
use control_domain::{
    Project, Refusal, Webhook, WebhookAttempt, WebhookDelivery, WebhookDeliveryState, WebhookEvent,
};
use control_sso::WebUrl;
use control_store::{DueWebhook, ProjectAction, StoreError, Transaction};
use control_wire::{DriftId, ProjectId, RolloutId, WebhookDeliveryId, WebhookId};
use jiff::{SignedDuration, Timestamp};
use metrics::counter;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Maximum number of queued events per webhook; further ones are dropped.
pub(crate) const MAX_PENDING: i64 = 1_000;
pub(crate) const TEST_EVENT: &str = "webhook.test";
/// Number of ended deliveries kept per webhook.
const MAX_KEPT_DELIVERIES: i64 = 100;
/// Maximum number of audit entries per round.
const MAX_ENTRIES_PER_ROUND: i64 = 500;
/// Maximum number of webhooks per round: of due ones, and of those that receive events of silent
/// nodes.
const MAX_WEBHOOKS_PER_ROUND: i64 = 500;
/// Maximum number of nodes named by one event.
const MAX_NAMED_NODES: i64 = 50;
/// Maximum number of consecutive deliveries to one webhook.
const MAX_CONSECUTIVE_DELIVERIES: usize = 50;
/// Time after which no further consecutive delivery starts, so that a slow receiver yields its
/// slot.
const ROW_TIME: SignedDuration = SignedDuration::from_secs(2);

impl App {
    /// Queues new events for the webhooks that subscribe to them. With `silence`, also events of
    /// silent nodes, which a control plane cannot detect just after its start or an outage of the
    /// database.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn queue_webhooks(
        &self,
        replica: Uuid,
        now: Timestamp,
        silence: bool,
    ) -> Result<(), Error> {
        let mut tx = self.store.read().await?;
        if !tx.has_enabled_webhooks().await? {
            return Ok(());
        }
        let is_new = !tx.unqueued_actions(1).await?.is_empty();
        let mut silent = Vec::new();
        if silence && !self.is_after_outage(now) {
            let since = self.heartbeat_interval.online_since(now);
            for webhook in tx
                .webhooks_of_silence(since, MAX_WEBHOOKS_PER_ROUND)
                .await?
            {
                silent.extend(self.silent_nodes(&mut tx, webhook, now).await?);
            }
        }
        drop(tx);
        if !is_new && silent.is_empty() {
            return Ok(());
        }
        if !self.acquire_lease("webhooks", replica, now).await? {
            return Ok(());
        }
        match self.store_events(silent, now).await {
            // Another replica queued the events first.
            Err(Error::Store(StoreError::Stale)) => Ok(()),
            result => result,
        }
    }

    async fn store_events(
        &self,
        silent: Vec<(Webhook, Value)>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let actions = tx.unqueued_actions(MAX_ENTRIES_PER_ROUND).await?;
        for action in &actions {
            self.queue_action(&mut tx, action).await?;
        }
        if let Some(last) = actions.last() {
            tx.move_webhook_cursor(last.seq).await?;
        }
        for (webhook, nodes) in silent {
            let up_to = self.heartbeat_interval.online_since(now);
            tx.note_silent_nodes(webhook.id, up_to).await?;
            let event = WebhookEvent::NodeSilent.name();
            self.queue(&mut tx, &webhook, event, nodes, now).await?;
        }
        let committed = tx.commit().await;
        self.note_write(&committed);
        Ok(committed?)
    }

    async fn queue_action(
        &self,
        tx: &mut Transaction,
        action: &ProjectAction,
    ) -> Result<(), Error> {
        let (Some(event), Some(project)) =
            (WebhookEvent::from_action(&action.action), action.project)
        else {
            return Ok(());
        };
        let mut receivers = tx.enabled_webhooks_of(project).await?;
        receivers.retain(|webhook| webhook.events.contains(&event));
        if receivers.is_empty() {
            return Ok(());
        }
        let details = match event {
            WebhookEvent::DriftOpened => drift_details(tx, DriftId(action.subject)).await?,
            WebhookEvent::RolloutAwaitingApproval
            | WebhookEvent::RolloutStopped
            | WebhookEvent::RolloutRolledBack
            | WebhookEvent::RolloutCompleted
            | WebhookEvent::NodeSilent => rollout_details(tx, RolloutId(action.subject)).await?,
        };
        for webhook in &receivers {
            self.queue(tx, webhook, event.name(), details.clone(), action.at)
                .await?;
        }
        Ok(())
    }

    /// Queues an event for one webhook; drops it if the queue is full.
    async fn queue(
        &self,
        tx: &mut Transaction,
        webhook: &Webhook,
        event: &str,
        mut details: Value,
        at: Timestamp,
    ) -> Result<(), Error> {
        let Some(project) = project_of(tx, webhook).await? else {
            return Ok(());
        };
        if MAX_PENDING <= tx.count_pending(webhook.id).await? {
            counter!(metric::WEBHOOK_DELIVERIES, "result" => "dropped").increment(1);
            return Ok(());
        }
        self.add_page(&mut details, project.id);
        let id = WebhookDeliveryId::new(self.now(), self.random_id());
        let body = payload(id, event, &project, at, details);
        let delivery = WebhookDelivery::new(id, webhook.id, event, body, self.now());
        Ok(tx.insert_delivery(&delivery).await?)
    }

    /// Adds the URL of the page about the event, if the installation has a public URL.
    fn add_page(&self, details: &mut Value, project: ProjectId) {
        let Some(site) = &self.sso_site.public_url else {
            return;
        };
        let rollout = details.get("rollout").and_then(|rollout| rollout.get("id"));
        let path = match (rollout.and_then(Value::as_str), details.get("drift")) {
            (Some(rollout), _) => format!("rollouts/{rollout}"),
            (None, Some(_)) => "drift".to_owned(),
            (None, None) => "nodes".to_owned(),
        };
        if let Some(details) = details.as_object_mut() {
            let page = format!("{site}/projects/{project}/{path}");
            details.insert("page".to_owned(), page.into());
        }
    }

    /// Event for the nodes that became silent since the webhook's last event; `None` if there are
    /// none.
    async fn silent_nodes(
        &self,
        tx: &mut Transaction,
        webhook: Webhook,
        now: Timestamp,
    ) -> Result<Option<(Webhook, Value)>, Error> {
        let since = self.heartbeat_interval.online_since(now);
        let (nodes, count) = tx
            .newly_silent_nodes(&webhook, since, MAX_NAMED_NODES)
            .await?;
        if nodes.is_empty() {
            return Ok(None);
        }
        let nodes = nodes
            .iter()
            .map(|(id, name)| json!({"id": id, "name": name}));
        let nodes: Vec<Value> = nodes.collect();
        let details = json!({"nodes": nodes, "node_count": count});
        Ok(Some((webhook, details)))
    }

    /// Webhooks with a delivery that is due, some of each organization.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn due_webhooks(&self, now: Timestamp) -> Result<Vec<DueWebhook>, Error> {
        Ok(self
            .store
            .read()
            .await?
            .due_webhooks(now, MAX_WEBHOOKS_PER_ROUND)
            .await?)
    }

    /// Sends a webhook's due deliveries in order, until one fails or two seconds have passed.
    /// Replicas may call it concurrently: the replica that started an attempt owns it.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer, [`Error::Seal`] if this replica lacks the
    /// master key of the secret; a started attempt is due again after a minute, and not counted.
    pub async fn send_webhook(&self, id: WebhookId) -> Result<(), Error> {
        let begun = self.now();
        for _ in 0..MAX_CONSECUTIVE_DELIVERIES {
            let now = self.now();
            if begun + ROW_TIME <= now {
                return Ok(());
            }
            let mut tx = self.store.begin().await?;
            let webhook = tx.webhook(id).await?;
            let due = tx.due_delivery(id, now).await?;
            let (Some(webhook), Some(due)) = (webhook, due) else {
                return Ok(());
            };
            let before = due.attempts;
            let delivery = due.begin(now);
            let is_own = tx.update_delivery(&delivery, before).await?;
            tx.commit().await?;
            if !is_own {
                return Ok(());
            }
            let attempt = match self.attempt(&webhook.value, &delivery).await {
                Ok(attempt) => attempt,
                Err(error) => {
                    let reason = format!("not sent: {error}");
                    if is_passing(&error) {
                        self.withdraw_attempt(delivery, reason).await?;
                        return Err(error);
                    }
                    WebhookAttempt {
                        status: None,
                        error: Some(reason),
                    }
                }
            };
            if !self.end_attempt(delivery, attempt).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Records that an attempt could not be made by this replica, or now.
    async fn withdraw_attempt(
        &self,
        delivery: WebhookDelivery,
        reason: String,
    ) -> Result<(), Error> {
        let attempts = delivery.attempts;
        let mut tx = self.store.begin().await?;
        let delivery = delivery.withdraw(reason);
        tx.update_delivery(&delivery, attempts).await?;
        Ok(tx.commit().await?)
    }

    /// Records the result of an attempt; returns true if the receiver accepted the delivery.
    async fn end_attempt(
        &self,
        delivery: WebhookDelivery,
        attempt: WebhookAttempt,
    ) -> Result<bool, Error> {
        let attempts = delivery.attempts;
        let ended = delivery.end(attempt, self.now());
        let result = match ended.state {
            WebhookDeliveryState::Delivered => "delivered",
            WebhookDeliveryState::Pending => "retried",
            WebhookDeliveryState::Failed => "failed",
        };
        counter!(metric::WEBHOOK_DELIVERIES, "result" => result).increment(1);
        let mut tx = self.store.begin().await?;
        tx.update_delivery(&ended, attempts).await?;
        if ended.state != WebhookDeliveryState::Pending {
            tx.trim_deliveries(ended.webhook, MAX_KEPT_DELIVERIES)
                .await?;
        }
        tx.commit().await?;
        Ok(ended.state == WebhookDeliveryState::Delivered)
    }

    async fn attempt(
        &self,
        webhook: &Webhook,
        delivery: &WebhookDelivery,
    ) -> Result<WebhookAttempt, Error> {
        let secret = webhook.secret;
        let stored = self.store.read().await?.secret(secret).await?;
        let stored = stored.ok_or(Refusal::NotFound)?;
        let key = WebhookKey::new(self.sealer.open(&secret.to_string(), &stored.sealed)?);
        let (id, timestamp) = (delivery.id.to_string(), self.now().as_second());
        let headers = [
            ("webhook-id", id.clone()),
            ("webhook-timestamp", timestamp.to_string()),
            (
                "webhook-signature",
                key.sign(&id, timestamp, &delivery.payload),
            ),
        ];
        let answer = match (WebUrl::parse(&webhook.url), self.outbound()) {
            (Some(url), Ok(outbound)) => {
                let body = delivery.payload.clone();
                outbound.post_json(&url, body, &headers).await
            }
            (_, Err(error)) => Err(error),
            (None, Ok(_)) => return Err(StoreError::Corrupt("url").into()),
        };
        Ok(match answer {
            Ok(status) if (200..300).contains(&status) => WebhookAttempt {
                status: Some(status),
                error: None,
            },
            Ok(status) => WebhookAttempt {
                status: Some(status),
                error: Some(format!(
                    "the status is {status}, not 2xx; redirects are not followed"
                )),
            },
            Err(error) => WebhookAttempt {
                status: None,
                error: Some(error.to_string()),
            },
        })
    }
}

/// Returns true for a failure that another replica may not have, or that passes: a database without
/// answer, or a master key that this replica has not read yet. Others would fail at each attempt, so
/// that they count as failed ones.
fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::Store(StoreError::Unavailable(_) | StoreError::Stale | StoreError::Unwritable)
            | Error::Seal(SealError::UnknownKey)
    )
}

/// JSON body of a delivery.
pub(crate) fn payload(
    id: WebhookDeliveryId,
    event: &str,
    project: &Project,
    at: Timestamp,
    details: Value,
) -> String {
    let mut body = Map::new();
    body.insert("id".to_owned(), json!(id));
    body.insert("type".to_owned(), json!(event));
    body.insert("timestamp".to_owned(), json!(at));
    let mut data = Map::new();
    data.insert("organization".to_owned(), json!(project.org));
    let named = json!({"id": project.id, "name": project.name.as_str()});
    data.insert("project".to_owned(), named);
    if let Value::Object(details) = details {
        data.extend(details);
    }
    body.insert("data".to_owned(), Value::Object(data));
    Value::Object(body).to_string()
}

async fn project_of(tx: &mut Transaction, webhook: &Webhook) -> Result<Option<Project>, Error> {
    let Some(project) = webhook.tenant.project else {
        return Ok(None);
    };
    Ok(tx.project(project).await?.map(|found| found.value))
}

/// Details of the rollout for its event; empty if it was deleted.
async fn rollout_details(tx: &mut Transaction, id: RolloutId) -> Result<Value, Error> {
    let Some(found) = tx.rollout(id).await? else {
        return Ok(json!({"rollout": {"id": id}}));
    };
    let rollout = found.value;
    Ok(json!({"rollout": {
        "id": id,
        "state": rollout.state.name(),
        "bundle": rollout.bundle,
        "nodes": rollout.nodes,
        "batch": rollout.batch.map(|batch| batch.number),
        "reason": rollout.reason,
    }}))
}

async fn drift_details(tx: &mut Transaction, id: DriftId) -> Result<Value, Error> {
    let Some(found) = tx.drift(id).await? else {
        return Ok(json!({"drift": {"id": id}}));
    };
    let drift = found.value;
    let node = tx.node(drift.node).await?;
    let name = node.map(|node| node.value.name.to_string());
    Ok(json!({"drift": {
        "id": id,
        "state": drift.state.name(),
        "node": {"id": drift.node, "name": name},
        "desired": drift.desired,
        "active": drift.active,
    }}))
}
