//! Webhooks.

use crate::error::StoreError;
use crate::row::{id, number, optional_id, text, time, truth, versioned};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{ListFilter, Page, SortColumn, Versioned};
use control_domain::{Name, Tenant, Webhook, WebhookEvent};
use control_wire::{NodeId, ProjectId, WebhookId};
use jiff::Timestamp;
use sqlx::any::AnyRow;
use uuid::Uuid;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, org_id, project_id, name, url, events, enabled, secret_id, created_at,
               version FROM webhooks ",
            $rest
        )
    };
}

/// An audit entry of a project, for webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectAction {
    /// Number of the entry in the whole log.
    pub seq: i64,
    /// The time of the request.
    pub at: Timestamp,
    /// The project; `None` for entries of organizations.
    pub project: Option<ProjectId>,
    /// The action, such as `rollout.complete`.
    pub action: String,
    /// Identifier of the changed object.
    pub subject: Uuid,
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "id",
    columns: &[(SortColumn::Name, "name")],
};

impl Transaction {
    /// Inserts a webhook. Nodes with their last heartbeat at or before `silent_up_to` are not
    /// reported to it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the name is taken in the project.
    pub async fn insert_webhook(
        &mut self,
        webhook: &Webhook,
        silent_up_to: Timestamp,
    ) -> Result<(), StoreError> {
        let Webhook {
            id,
            tenant: Tenant { org, project },
            name,
            url,
            events,
            enabled,
            secret,
            created_at,
        } = webhook;
        let insert = "INSERT INTO webhooks (id, org_id, project_id, name, url, events, enabled,
                        secret_id, silent_up_to, created_at, version)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)";
        let insert = sql(insert).bind(*id).bind(*org).bind(*project).bind(name);
        let insert = insert
            .bind(url.as_str())
            .bind(stored(events))
            .bind(*enabled)
            .bind(*secret)
            .bind(silent_up_to)
            .bind(*created_at);
        insert.run(self).await?;
        Ok(())
    }

    /// The webhook, if it exists.
    pub async fn webhook(
        &mut self,
        webhook: WebhookId,
    ) -> Result<Option<Versioned<Webhook>>, StoreError> {
        sql(select!("WHERE id = $1")).bind(webhook).one(self).await
    }

    /// The webhooks of a project.
    pub async fn webhooks(
        &mut self,
        project: ProjectId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Webhook>>, StoreError> {
        let ListFilter { name, sort } = filter;
        let list =
            ListQuery::new(select!("WHERE project_id = ?"), project).named("name", name.as_deref());
        list.sorted(self, &SORTED, sort.as_ref(), page).await
    }

    /// At most `limit` enabled webhooks that subscribe to silent nodes and have new ones to report:
    /// nodes with their last heartbeat at or before `online_since`, but after the time that the
    /// webhook's last event covered.
    pub async fn webhooks_of_silence(
        &mut self,
        online_since: Timestamp,
        limit: i64,
    ) -> Result<Vec<Webhook>, StoreError> {
        let list = select!(
            "WHERE enabled = 1 AND ',' || events || ',' LIKE '%,node.silent,%'
               AND EXISTS (SELECT 1 FROM node_heartbeats h
                 WHERE h.project_id = webhooks.project_id
                   AND h.seen_at > webhooks.silent_up_to AND h.seen_at <= $1)
             ORDER BY id LIMIT $2"
        );
        let rows = sql(list).bind(online_since).bind(limit).rows(self).await?;
        let found = rows.iter().map(|row| Ok(Webhook::read(row)?.value));
        found.collect()
    }

    /// The enabled webhooks of a project.
    pub async fn enabled_webhooks_of(
        &mut self,
        project: ProjectId,
    ) -> Result<Vec<Webhook>, StoreError> {
        let list = select!("WHERE project_id = $1 AND enabled = 1 ORDER BY id");
        let rows = sql(list).bind(project).rows(self).await?;
        let found = rows.iter().map(|row| Ok(Webhook::read(row)?.value));
        found.collect()
    }

    /// Returns true if any webhook is enabled.
    pub async fn has_enabled_webhooks(&mut self) -> Result<bool, StoreError> {
        let one = sql("SELECT id FROM webhooks WHERE enabled = 1 LIMIT 1");
        Ok(one.row(self).await?.is_some())
    }

    /// Number of webhooks in a project.
    pub async fn count_webhooks(&mut self, project: ProjectId) -> Result<i64, StoreError> {
        let count = sql("SELECT COUNT(*) AS found FROM webhooks WHERE project_id = $1");
        let row = count.bind(project).row(self).await?;
        row.map_or(Ok(0), |row| number(&row, "found"))
    }

    /// Updates the webhook if `version` is stored; returns the next version. `silent_up_to` is
    /// stored if the webhook is enabled again.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Conflict`] if the name is taken.
    pub async fn update_webhook(
        &mut self,
        webhook: &Webhook,
        silent_up_to: Option<Timestamp>,
        version: i64,
    ) -> Result<i64, StoreError> {
        let Webhook {
            id,
            tenant: _,
            name,
            url,
            events,
            enabled,
            secret,
            created_at: _,
        } = webhook;
        if let Some(silent_up_to) = silent_up_to {
            let update = sql("UPDATE webhooks SET silent_up_to = $1 WHERE id = $2");
            update.bind(silent_up_to).bind(*id).run(self).await?;
        }
        let update = "UPDATE webhooks SET name = $1, url = $2, events = $3, enabled = $4,
                        secret_id = $5, version = version + 1
                      WHERE id = $6 AND version = $7";
        let update = sql(update).bind(name).bind(url.as_str());
        let update = update.bind(stored(events)).bind(*enabled).bind(*secret);
        update.bind(*id).write(self, version).await
    }

    /// Deletes the webhook and its queue if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn delete_webhook(
        &mut self,
        webhook: WebhookId,
        version: i64,
    ) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM webhooks WHERE id = $1 AND version = $2");
        delete.bind(webhook).write(self, version).await?;
        Ok(())
    }

    /// Nodes with their last heartbeat at or before `online_since`, but after the time that the
    /// webhook's last event covered. Returns at most `limit` identifiers and names, and the total
    /// number.
    pub async fn newly_silent_nodes(
        &mut self,
        webhook: &Webhook,
        online_since: Timestamp,
        limit: i64,
    ) -> Result<(Vec<(NodeId, String)>, i64), StoreError> {
        let known = sql("SELECT silent_up_to FROM webhooks WHERE id = $1");
        let Some(row) = known.bind(webhook.id).row(self).await? else {
            return Ok((Vec::new(), 0));
        };
        let known = time(&row, "silent_up_to")?;
        if online_since <= known {
            return Ok((Vec::new(), 0));
        }
        let project = webhook.tenant.project;
        let count = "SELECT COUNT(*) AS found FROM node_heartbeats
                     WHERE project_id = $1 AND seen_at > $2 AND seen_at <= $3";
        let count = sql(count).bind(project).bind(known).bind(online_since);
        let row = count.row(self).await?;
        let found = row.map_or(Ok(0), |row| number(&row, "found"))?;
        if found == 0 {
            return Ok((Vec::new(), 0));
        }
        let list = "SELECT n.id AS id, n.name AS name
                    FROM node_heartbeats h JOIN nodes n ON n.id = h.node_id
                    WHERE h.project_id = $1 AND h.seen_at > $2 AND h.seen_at <= $3
                    ORDER BY h.seen_at, h.node_id LIMIT $4";
        let list = sql(list).bind(project).bind(known).bind(online_since);
        let rows = list.bind(limit).rows(self).await?;
        let nodes = rows
            .iter()
            .map(|row| Ok((id(row, "id")?, text(row, "name")?)));
        Ok((nodes.collect::<Result<_, StoreError>>()?, found))
    }

    /// Records the time up to which silent nodes were reported.
    pub async fn note_silent_nodes(
        &mut self,
        webhook: WebhookId,
        up_to: Timestamp,
    ) -> Result<(), StoreError> {
        let update = "UPDATE webhooks SET silent_up_to = $1 WHERE id = $2 AND silent_up_to < $3";
        let update = sql(update).bind(up_to).bind(webhook).bind(up_to);
        update.run(self).await?;
        Ok(())
    }

    /// Audit entries after the cursor, in order. The cursor is read in the same transaction, so
    /// that each entry is queued once.
    pub async fn unqueued_actions(&mut self, limit: i64) -> Result<Vec<ProjectAction>, StoreError> {
        let list = "SELECT seq, at, project_id, action, subject_id FROM audit
                    WHERE seq > (SELECT seq FROM webhook_cursor WHERE id = 1)
                    ORDER BY seq LIMIT $1";
        let rows = sql(list).bind(limit).rows(self).await?;
        let read = |row: &AnyRow| {
            Ok(ProjectAction {
                seq: number(row, "seq")?,
                at: time(row, "at")?,
                project: optional_id(row, "project_id")?,
                action: text(row, "action")?,
                subject: id(row, "subject_id")?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Moves the cursor to entry `seq`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another replica moved it first.
    pub async fn move_webhook_cursor(&mut self, seq: i64) -> Result<(), StoreError> {
        let update = sql("UPDATE webhook_cursor SET seq = $1 WHERE id = 1 AND seq < $2");
        if update.bind(seq).bind(seq).run(self).await? == 0 {
            return Err(StoreError::Stale);
        }
        Ok(())
    }

    /// Moves the cursor to entry `seq`, but never back.
    pub async fn skip_webhook_cursor(&mut self, seq: i64) -> Result<(), StoreError> {
        match self.move_webhook_cursor(seq).await {
            Err(StoreError::Stale) => Ok(()),
            result => result,
        }
    }
}

/// Names of the events, separated by commas.
fn stored(events: &[WebhookEvent]) -> String {
    let names: Vec<&str> = events.iter().map(|event| event.name()).collect();
    names.join(",")
}

impl Record for Webhook {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let names = text(row, "events")?;
        let events = names.split(',').map(WebhookEvent::from_name);
        let events: Option<Vec<_>> = events.collect();
        let webhook = Self {
            id: id(row, "id")?,
            tenant: Tenant::project(id(row, "org_id")?, id(row, "project_id")?),
            name: Name::stored(text(row, "name")?),
            url: text(row, "url")?,
            events: events.ok_or(StoreError::Corrupt("events"))?,
            enabled: truth(row, "enabled")?,
            secret: id(row, "secret_id")?,
            created_at: time(row, "created_at")?,
        };
        versioned(webhook, row)
    }
}
