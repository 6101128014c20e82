//! Webhook deliveries: a bounded queue, and the newest ended deliveries.

use crate::error::StoreError;
use crate::row::{id, named, number, optional_number, optional_text, optional_time, text, time};
use crate::statement::list::ListQuery;
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{Page, Versioned};
use control_domain::{WebhookDelivery, WebhookDeliveryState};
use control_wire::{OrgId, WebhookId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, webhook_id, event, payload, state, attempts, next_at, last_status,
               last_error, created_at, ended_at FROM webhook_deliveries d ",
            $rest
        )
    };
}

/// A webhook with a due delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueWebhook {
    /// Organization of the webhook's project.
    pub org: OrgId,
    /// Webhook with a due delivery.
    pub webhook: WebhookId,
}

impl Transaction {
    /// Inserts a new delivery.
    pub async fn insert_delivery(&mut self, delivery: &WebhookDelivery) -> Result<(), StoreError> {
        let WebhookDelivery {
            id,
            webhook,
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
        let insert = "INSERT INTO webhook_deliveries (id, webhook_id, event, payload, state,
                        attempts, next_at, last_status, last_error, created_at, ended_at)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let insert = sql(insert).bind(*id).bind(*webhook).bind(event.as_str());
        let insert = insert
            .bind(payload.as_str())
            .bind(state.name())
            .bind(*attempts)
            .bind(*next_at)
            .bind(last_status.map(i64::from))
            .bind(last_error.as_deref())
            .bind(*created_at)
            .bind(*ended_at);
        insert.run(self).await?;
        Ok(())
    }

    /// The deliveries of a webhook.
    pub async fn deliveries(
        &mut self,
        webhook: WebhookId,
        page: Page,
    ) -> Result<Vec<WebhookDelivery>, StoreError> {
        let list = ListQuery::new(select!("WHERE webhook_id = ?"), webhook);
        let found: Vec<Versioned<WebhookDelivery>> = list.page(self, "id", page).await?;
        Ok(found.into_iter().map(|found| found.value).collect())
    }

    /// Number of queued deliveries of a webhook.
    pub async fn count_pending(&mut self, webhook: WebhookId) -> Result<i64, StoreError> {
        let count = "SELECT COUNT(*) AS found FROM webhook_deliveries
                     WHERE webhook_id = $1 AND state = 'pending'";
        let row = sql(count).bind(webhook).row(self).await?;
        row.map_or(Ok(0), |row| number(&row, "found"))
    }

    /// Enabled webhooks with a due delivery, at most `limit` per organization, longest overdue
    /// first.
    pub async fn due_webhooks(
        &mut self,
        now: Timestamp,
        limit: i64,
    ) -> Result<Vec<DueWebhook>, StoreError> {
        let due = "SELECT id, org_id FROM (
                     SELECT d.webhook_id AS id, w.org_id AS org_id, MIN(d.next_at) AS due_at,
                       ROW_NUMBER() OVER (PARTITION BY w.org_id
                         ORDER BY MIN(d.next_at), d.webhook_id) AS turn
                     FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id
                     WHERE d.state = 'pending' AND d.next_at <= $1 AND w.enabled = 1
                     GROUP BY d.webhook_id, w.org_id) AS found
                   WHERE turn <= $2 ORDER BY due_at, id";
        let rows = sql(due).bind(now).bind(limit).rows(self).await?;
        let read = |row: &AnyRow| {
            Ok(DueWebhook {
                org: id(row, "org_id")?,
                webhook: id(row, "id")?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// The oldest due delivery of an enabled webhook.
    pub async fn due_delivery(
        &mut self,
        webhook: WebhookId,
        now: Timestamp,
    ) -> Result<Option<WebhookDelivery>, StoreError> {
        let due = select!(
            "WHERE webhook_id = $1 AND state = 'pending' AND next_at <= $2
               AND EXISTS (SELECT 1 FROM webhooks w WHERE w.id = d.webhook_id AND w.enabled = 1)
             ORDER BY id LIMIT 1"
        );
        let one = sql(due).bind(webhook).bind(now);
        Ok(one.one(self).await?.map(|found| found.value))
    }

    /// Stores a step of a delivery, if it is pending with the expected number of attempts. Returns
    /// false if another replica was first, or the webhook was deleted.
    pub async fn update_delivery(
        &mut self,
        delivery: &WebhookDelivery,
        attempts_before: i64,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE webhook_deliveries SET state = $1, attempts = $2, next_at = $3,
                        last_status = $4, last_error = $5, ended_at = $6
                      WHERE id = $7 AND state = 'pending' AND attempts = $8";
        let update = sql(update).bind(delivery.state.name());
        let update = update
            .bind(delivery.attempts)
            .bind(delivery.next_at)
            .bind(delivery.last_status.map(i64::from))
            .bind(delivery.last_error.as_deref())
            .bind(delivery.ended_at)
            .bind(delivery.id)
            .bind(attempts_before);
        Ok(update.run(self).await? > 0)
    }

    /// Deletes a webhook's ended deliveries except the newest `kept`.
    pub async fn trim_deliveries(
        &mut self,
        webhook: WebhookId,
        kept: i64,
    ) -> Result<(), StoreError> {
        let trim = "DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND state <> 'pending'
                    AND id <= (SELECT id FROM webhook_deliveries
                      WHERE webhook_id = $2 AND state <> 'pending'
                      ORDER BY id DESC LIMIT 1 OFFSET $3)";
        let trim = sql(trim).bind(webhook).bind(webhook).bind(kept);
        trim.run(self).await?;
        Ok(())
    }
}

impl Record for WebhookDelivery {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let status = optional_number(row, "last_status")?;
        let status = status.map(u16::try_from).transpose();
        let delivery = Self {
            id: id(row, "id")?,
            webhook: id(row, "webhook_id")?,
            event: text(row, "event")?,
            payload: text(row, "payload")?,
            state: named(row, "state", WebhookDeliveryState::from_name)?,
            attempts: number(row, "attempts")?,
            next_at: time(row, "next_at")?,
            last_status: status.map_err(|_| StoreError::Corrupt("last_status"))?,
            last_error: optional_text(row, "last_error")?,
            created_at: time(row, "created_at")?,
            ended_at: optional_time(row, "ended_at")?,
        };
        Ok(Versioned::new(delivery))
    }
}
