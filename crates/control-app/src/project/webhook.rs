//! Webhooks of a project: settings, secrets, deliveries.

use crate::app::{App, taken, tenant};
use crate::audit::value::{Audited, changed, created, deleted, done};
use crate::call::Call;
use crate::error::Error;
use crate::project::delivery::{MAX_PENDING, TEST_EVENT, payload};
use control_auth::WebhookKey;
use control_domain::{
    Access, NewWebhook, QuotaKind, Refusal, Webhook, WebhookDelivery, WebhookSettings,
};
use control_store::{ListFilter, Page, StoredSecret, Transaction, Versioned};
use control_wire::{OrgId, ProjectId, SecretId, WebhookDeliveryId, WebhookId};
use serde_json::json;
use zeroize::Zeroizing;

/// Maximum number of webhooks of one project.
const MAX_WEBHOOKS: i64 = 100;

impl App {
    /// Creates a webhook; returns its secret, which is shown once.
    pub async fn create_webhook(
        &self,
        call: &Call,
        project: ProjectId,
        settings: WebhookSettings,
    ) -> Result<(Versioned<Webhook>, Zeroizing<String>), Error> {
        let mut tx = self.store.begin().await?;
        let tenant = tenant(&mut tx, project).await?;
        let id = WebhookId::new(call.now, self.random_id());
        let secret = SecretId::new(call.now, self.random_id());
        let new = NewWebhook {
            id,
            secret,
            settings,
        };
        let addresses = self.sso_site.private_addresses;
        let webhook = Webhook::create(&call.actor, tenant, new, addresses, call.now)?;
        self.check_address("url", &webhook.url)?;
        // Serializes writers, so that the limit is exact.
        tx.lock_audit().await?;
        if MAX_WEBHOOKS <= tx.count_webhooks(project).await? {
            let limit = MAX_WEBHOOKS.unsigned_abs();
            let (kind, owner) = ("webhooks", "a project");
            return Err(Refusal::Quota { kind, owner, limit }.into());
        }
        self.check_quota(&mut tx, tenant.org, QuotaKind::Webhooks, 1)
            .await?;
        let key = self
            .insert_webhook_key(&mut tx, call, tenant.org, secret)
            .await?;
        skip_old_actions(&mut tx).await?;
        let silent_up_to = self.heartbeat_interval.online_since(call.now);
        let inserted = tx.insert_webhook(&webhook, silent_up_to).await;
        inserted.map_err(taken("name"))?;
        tx.note_change(created(&webhook));
        self.commit(tx, call, "webhook.created", tenant, id.0)
            .await?;
        Ok((Versioned::new(webhook), key.reveal()))
    }

    /// The webhooks of a project.
    pub async fn webhooks(
        &self,
        call: &Call,
        project: ProjectId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Webhook>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::ADMINISTER, tenant)?;
        Ok(tx.webhooks(project, filter, page).await?)
    }

    /// One webhook with its version.
    pub async fn webhook(
        &self,
        call: &Call,
        project: ProjectId,
        id: WebhookId,
    ) -> Result<Versioned<Webhook>, Error> {
        let found = find(&mut self.store.read().await?, project, id).await?;
        call.actor.require(Access::ADMINISTER, found.value.tenant)?;
        Ok(found)
    }

    /// Replaces a webhook's settings; the secret is kept.
    pub async fn update_webhook(
        &self,
        call: &Call,
        project: ProjectId,
        id: WebhookId,
        settings: WebhookSettings,
    ) -> Result<Versioned<Webhook>, Error> {
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let found = find(&mut tx, project, id).await?;
        let (before, was_enabled) = (found.value.audited(), found.value.enabled);
        let addresses = self.sso_site.private_addresses;
        let value = found.value.update(&call.actor, settings, addresses)?;
        self.check_address("url", &value.url)?;
        call.expect_version(found.version)?;
        let is_begun = value.enabled && !was_enabled;
        let silent_up_to = is_begun.then(|| self.heartbeat_interval.online_since(call.now));
        if is_begun {
            skip_old_actions(&mut tx).await?;
        }
        let updated = tx.update_webhook(&value, silent_up_to, found.version).await;
        let version = updated.map_err(taken("name"))?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "webhook.updated", value.tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Rotates a webhook's secret; the new one is shown once, and signs all later attempts.
    pub async fn rotate_webhook_secret(
        &self,
        call: &Call,
        project: ProjectId,
        id: WebhookId,
    ) -> Result<(Versioned<Webhook>, Zeroizing<String>), Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        let old = found.value.secret;
        let secret = SecretId::new(call.now, self.random_id());
        let value = found.value.with_secret(&call.actor, secret)?;
        call.expect_version(found.version)?;
        let tenant = value.tenant;
        let key = self
            .insert_webhook_key(&mut tx, call, tenant.org, secret)
            .await?;
        let version = tx.update_webhook(&value, None, found.version).await?;
        tx.delete_secret(old).await?;
        self.commit(tx, call, "webhook.secret_rotated", tenant, value.id.0)
            .await?;
        Ok((Versioned { value, version }, key.reveal()))
    }

    /// Deletes a webhook together with its queue.
    pub async fn delete_webhook(
        &self,
        call: &Call,
        project: ProjectId,
        id: WebhookId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        found.value.check_control(&call.actor)?;
        call.expect_version(found.version)?;
        let tenant = found.value.tenant;
        tx.delete_webhook(id, found.version).await?;
        tx.delete_secret(found.value.secret).await?;
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "webhook.deleted", tenant, id.0).await
    }

    /// Queued deliveries of a webhook, and the newest ended ones.
    pub async fn webhook_deliveries(
        &self,
        call: &Call,
        project: ProjectId,
        id: WebhookId,
        page: Page,
    ) -> Result<Vec<WebhookDelivery>, Error> {
        let mut tx = self.store.read().await?;
        let found = find(&mut tx, project, id).await?.value;
        call.actor.require(Access::ADMINISTER, found.tenant)?;
        Ok(tx.deliveries(found.id, page).await?)
    }

    /// Queues a test event for the receiver.
    pub async fn test_webhook(
        &self,
        call: &Call,
        project: ProjectId,
        id: WebhookId,
    ) -> Result<WebhookDelivery, Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, project, id).await?;
        found.value.check_control(&call.actor)?;
        call.expect_version(found.version)?;
        let webhook = found.value;
        if !webhook.enabled {
            let (noun, state, event) = ("a webhook", "disabled", "be tested");
            return Err(Refusal::WrongState { noun, state, event }.into());
        }
        if MAX_PENDING <= tx.count_pending(webhook.id).await? {
            let limit = MAX_PENDING.unsigned_abs();
            let (kind, owner) = ("waiting events", "a webhook");
            return Err(Refusal::Quota { kind, owner, limit }.into());
        }
        let project = tx.project(project).await?.ok_or(Refusal::NotFound)?.value;
        let id = WebhookDeliveryId::new(call.now, self.random_id());
        let body = payload(id, TEST_EVENT, &project, call.now, json!({}));
        let delivery = WebhookDelivery::new(id, webhook.id, TEST_EVENT, body, call.now);
        tx.insert_delivery(&delivery).await?;
        tx.note_change(done(&json!({"delivery": id})));
        let (tenant, webhook) = (webhook.tenant, webhook.id);
        self.commit(tx, call, "webhook.tested", tenant, webhook.0)
            .await?;
        Ok(delivery)
    }

    async fn insert_webhook_key(
        &self,
        tx: &mut Transaction,
        call: &Call,
        org: OrgId,
        id: SecretId,
    ) -> Result<WebhookKey, Error> {
        let bytes = Zeroizing::new(self.environment.random::<32>().to_vec());
        let key = WebhookKey::new(bytes);
        let random = self.environment.random();
        let sealed = self.sealer.seal(&id.to_string(), random, key.bytes())?;
        let secret = StoredSecret {
            id,
            org: Some(org),
            sealed,
            created_at: call.now,
        };
        tx.insert_secret(&secret).await?;
        Ok(key)
    }
}

/// Moves the cursor past all events so far, if no webhook is enabled: a first webhook receives only
/// later events.
async fn skip_old_actions(tx: &mut Transaction) -> Result<(), Error> {
    if tx.has_enabled_webhooks().await? {
        return Ok(());
    }
    let head = tx.audit_head().await?;
    tx.skip_webhook_cursor(head).await?;
    Ok(())
}

async fn find(
    tx: &mut Transaction,
    project: ProjectId,
    id: WebhookId,
) -> Result<Versioned<Webhook>, Error> {
    let found = tx.webhook(id).await?;
    let found = found.filter(|found| found.value.tenant.project == Some(project));
    Ok(found.ok_or(Refusal::NotFound)?)
}
