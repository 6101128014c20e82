//! Audit log of one organization, for its administrators.

use crate::error::StoreError;
use crate::row::{id, number, optional_id, optional_text, text, time};
use crate::statement::sql;
use crate::store::Transaction;
use crate::store::audit_event::AuditChange;
use control_wire::{OrgId, ProjectId};
use jiff::{SignedDuration, Timestamp};
use sqlx::any::AnyRow;
use uuid::Uuid;

/// Entries scanned per page at most, so that an empty filter stays cheap.
const MAX_SCANNED_ENTRIES: i64 = 5_000;
/// Maximum difference between replicas' clocks: entries are in commit order, so their times may
/// decrease by this much.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Number in the organization's log, from 1.
    pub seq: i64,
    /// The time of the request.
    pub at: Timestamp,
    /// The kind of actor, such as `api_key`.
    pub actor_kind: String,
    /// Identifier of the actor.
    pub actor: Uuid,
    /// The actor's name at that time; `None` in entries of releases that did not store it.
    pub actor_name: Option<String>,
    /// The client's IP address.
    pub client_ip: Option<String>,
    /// Project of the change; `None` if it concerns the organization as a whole.
    pub project: Option<ProjectId>,
    /// The action, such as `project.created`.
    pub action: String,
    /// Identifier of the changed object.
    pub subject: Uuid,
    /// Correlation ID of the request.
    pub correlation_id: String,
    /// Values before and after, as JSON.
    pub change: AuditChange,
    /// Link of the entry in the hash chain.
    pub hash: String,
}

/// Filter of entries; absent fields admit all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only actions of this actor.
    pub actor: Option<Uuid>,
    /// Only this action; a value that ends in `.` is a prefix.
    pub action: Option<String>,
    /// Only actions on this subject.
    pub subject: Option<Uuid>,
    /// Only actions in this project.
    pub project: Option<ProjectId>,
    /// Only entries from this time on.
    pub since: Option<Timestamp>,
    /// Only entries before this time.
    pub until: Option<Timestamp>,
}

/// A page of entries, and the position of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPage {
    /// The entries; fewer than the limit if a filter excludes many.
    pub records: Vec<AuditRecord>,
    /// Number to continue from; `None` on the last page.
    pub next: Option<i64>,
}

impl Transaction {
    /// The entries of an organization before `before`, newest first.
    pub async fn audit_before(
        &mut self,
        org: OrgId,
        filter: &AuditFilter,
        before: i64,
        limit: i64,
    ) -> Result<AuditPage, StoreError> {
        let window = "SELECT org_seq, at, actor_kind, actor_id, actor_name, client_ip,
                     project_id, action, subject_id, correlation_id, value_before, value_after,
                     hash
                   FROM (SELECT * FROM audit WHERE org_id = $1 AND org_seq < $2
                         ORDER BY org_seq DESC LIMIT $3) w
                   WHERE ($4 = '' OR actor_id = $4)
                     AND ($5 = '' OR substr(action, 1, CAST($11 AS INTEGER)) = $5)
                     AND ($6 = '' OR subject_id = $6) AND ($7 = '' OR project_id = $7)
                     AND at >= $8 AND at < $9
                   ORDER BY org_seq DESC LIMIT $10";
        let records = self
            .audit_window(window, org, before, filter, limit)
            .await?;
        let end = "SELECT COUNT(*) AS scanned, COALESCE(MIN(org_seq), 0) AS end_seq,
                     COALESCE(MIN(at), 0) AS end_at
                   FROM (SELECT org_seq, at FROM audit WHERE org_id = $1 AND org_seq < $2
                         ORDER BY org_seq DESC LIMIT $3) w";
        let end = self.audit_end(end, org, before).await?;
        let too_old = filter
            .since
            .is_some_and(|since| end.at < (since - CLOCK_SKEW).as_millisecond());
        let next = end
            .next(&records, limit)
            .filter(|_| !too_old || is_full(&records, limit));
        Ok(AuditPage { records, next })
    }

    /// The entries of an organization after `after`, oldest first.
    pub async fn audit_since(
        &mut self,
        org: OrgId,
        filter: &AuditFilter,
        after: i64,
        limit: i64,
    ) -> Result<AuditPage, StoreError> {
        let window = "SELECT org_seq, at, actor_kind, actor_id, actor_name, client_ip,
                     project_id, action, subject_id, correlation_id, value_before, value_after,
                     hash
                   FROM (SELECT * FROM audit WHERE org_id = $1 AND org_seq > $2
                         ORDER BY org_seq LIMIT $3) w
                   WHERE ($4 = '' OR actor_id = $4)
                     AND ($5 = '' OR substr(action, 1, CAST($11 AS INTEGER)) = $5)
                     AND ($6 = '' OR subject_id = $6) AND ($7 = '' OR project_id = $7)
                     AND at >= $8 AND at < $9
                   ORDER BY org_seq LIMIT $10";
        let records = self.audit_window(window, org, after, filter, limit).await?;
        let end = "SELECT COUNT(*) AS scanned, COALESCE(MAX(org_seq), 0) AS end_seq,
                     COALESCE(MAX(at), 0) AS end_at
                   FROM (SELECT org_seq, at FROM audit WHERE org_id = $1 AND org_seq > $2
                         ORDER BY org_seq LIMIT $3) w";
        let end = self.audit_end(end, org, after).await?;
        let next = end.next(&records, limit);
        Ok(AuditPage { records, next })
    }

    /// The number of the newest entry of an organization; 0 if there is none.
    pub async fn audit_newest(&mut self, org: OrgId) -> Result<i64, StoreError> {
        let newest = "SELECT org_seq FROM audit WHERE org_id = $1 AND org_seq IS NOT NULL
                      ORDER BY org_seq DESC LIMIT 1";
        let row = sql(newest).bind(org).row(self).await?;
        row.map_or(Ok(0), |row| number(&row, "org_seq"))
    }

    async fn audit_window(
        &mut self,
        text: &'static str,
        org: OrgId,
        position: i64,
        filter: &AuditFilter,
        limit: i64,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        let AuditFilter {
            actor,
            action,
            subject,
            project,
            since,
            until,
        } = filter;
        let action = action.as_deref().unwrap_or_default();
        let optional = |id: Option<Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
        let rows = sql(text)
            .bind(org)
            .bind(position)
            .bind(MAX_SCANNED_ENTRIES)
            .bind(optional(*actor))
            .bind(action)
            .bind(optional(*subject))
            .bind(optional(project.map(|project| project.0)))
            .bind(since.map_or(i64::MIN, Timestamp::as_millisecond))
            .bind(until.map_or(i64::MAX, Timestamp::as_millisecond))
            .bind(limit)
            .bind(compared_chars(action))
            .rows(self)
            .await?;
        rows.iter().map(read).collect()
    }

    async fn audit_end(
        &mut self,
        text: &'static str,
        org: OrgId,
        position: i64,
    ) -> Result<WindowEnd, StoreError> {
        let end = sql(text).bind(org).bind(position).bind(MAX_SCANNED_ENTRIES);
        let row = end.row(self).await?;
        let row = row.ok_or(StoreError::Corrupt("seq"))?;
        Ok(WindowEnd {
            scanned: number(&row, "scanned")?,
            seq: number(&row, "end_seq")?,
            at: number(&row, "end_at")?,
        })
    }
}

/// The last entry scanned for a page.
#[derive(Clone, Copy, Debug)]
struct WindowEnd {
    scanned: i64,
    seq: i64,
    at: i64,
}

impl WindowEnd {
    fn next(self, records: &[AuditRecord], limit: i64) -> Option<i64> {
        if is_full(records, limit) {
            return records.last().map(|record| record.seq);
        }
        (self.scanned == MAX_SCANNED_ENTRIES).then_some(self.seq)
    }
}

fn is_full(records: &[AuditRecord], limit: i64) -> bool {
    i64::try_from(records.len()).is_ok_and(|length| limit <= length)
}

/// Number of characters of an action that are compared: all of them, or the prefix's.
fn compared_chars(action: &str) -> i64 {
    let prefix = i64::try_from(action.chars().count()).ok();
    prefix
        .filter(|_| action.ends_with('.'))
        .unwrap_or(i64::from(i32::MAX))
}

fn read(row: &AnyRow) -> Result<AuditRecord, StoreError> {
    Ok(AuditRecord {
        seq: number(row, "org_seq")?,
        at: time(row, "at")?,
        actor_kind: text(row, "actor_kind")?,
        actor: id(row, "actor_id")?,
        actor_name: optional_text(row, "actor_name")?,
        client_ip: optional_text(row, "client_ip")?,
        project: optional_id(row, "project_id")?,
        action: text(row, "action")?,
        subject: id(row, "subject_id")?,
        correlation_id: text(row, "correlation_id")?,
        change: AuditChange {
            before: optional_text(row, "value_before")?,
            after: optional_text(row, "value_after")?,
        },
        hash: text(row, "hash")?,
    })
}
