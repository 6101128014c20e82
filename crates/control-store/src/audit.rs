//! The audit log: what was done, each entry with a hash over itself and the one before.
//!
//! It is also the outbox. The head's number grows with every change, in the same transaction, so
//! each replica watches that one row and wakes its long polls.

use crate::error::StoreError;
use crate::row::{number, optional_text, text};
use crate::statement::Write;
use crate::store::Transaction;
use control_auth::sha256;
use control_domain::Tenant;
use jiff::Timestamp;
use sqlx::any::AnyRow;
use sqlx::query;
use uuid::Uuid;

/// Entries read at once when the chain is verified.
const CHUNK: i64 = 500;

/// Something that was done.
#[derive(Clone, Copy, Debug)]
pub struct AuditEntry<'a> {
    /// When.
    pub at: Timestamp,
    /// The kind of actor, such as `api_key`.
    pub actor_kind: &'a str,
    /// The actor.
    pub actor: Uuid,
    /// Where it was done; `None` for the installation as a whole.
    pub tenant: Option<Tenant>,
    /// What was done, such as `project.created`.
    pub action: &'a str,
    /// What it was done to.
    pub subject: Uuid,
    /// The request.
    pub correlation_id: &'a str,
}

/// The first entry that does not fit the chain: it, or one before it, was changed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditFault {
    /// Its number, from 1.
    pub seq: i64,
}

/// An entry as its columns have it.
#[derive(Debug)]
struct Columns {
    at: i64,
    actor_kind: String,
    actor_id: String,
    org_id: Option<String>,
    project_id: Option<String>,
    action: String,
    subject_id: String,
    correlation_id: String,
}

impl Transaction {
    /// Adds an entry; gives its number. Writers wait here for each other until they commit.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn append_audit(&mut self, entry: &AuditEntry<'_>) -> Result<i64, StoreError> {
        let sql = "UPDATE audit_head SET seq = seq + 1 WHERE id = 1 RETURNING seq, hash";
        let head = query(sql).fetch_one(self.connection()).await?;
        self.count_written(1);
        let seq = number(&head, "seq")?;
        let columns = Columns::from(entry);
        let hash = columns.hash(&text(&head, "hash")?, seq);
        query("UPDATE audit_head SET hash = $1 WHERE id = 1")
            .bind(&hash)
            .write_in(self)
            .await?;
        let sql = "INSERT INTO audit (seq, at, actor_kind, actor_id, org_id, project_id, action,
                   subject_id, correlation_id, hash)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        query(sql)
            .bind(seq)
            .bind(columns.at)
            .bind(columns.actor_kind)
            .bind(columns.actor_id)
            .bind(columns.org_id)
            .bind(columns.project_id)
            .bind(columns.action)
            .bind(columns.subject_id)
            .bind(columns.correlation_id)
            .bind(hash)
            .write_in(self)
            .await?;
        Ok(seq)
    }

    /// The number of the newest entry; 0 if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn audit_head(&mut self) -> Result<i64, StoreError> {
        let row = query("SELECT seq FROM audit_head WHERE id = 1")
            .fetch_one(self.connection())
            .await?;
        number(&row, "seq")
    }

    /// Reads the whole log, 500 entries at a time, and compares every hash up to the head's.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it cannot be read.
    pub async fn verify_audit(&mut self) -> Result<Option<AuditFault>, StoreError> {
        // One statement sees one state of both tables, also beside writers.
        let sql = "SELECT seq, hash, (SELECT COALESCE(MAX(seq), 0) FROM audit) AS newest
                   FROM audit_head WHERE id = 1";
        let head = query(sql).fetch_one(self.connection()).await?;
        let (last, last_hash) = (number(&head, "seq")?, text(&head, "hash")?);
        let newest = number(&head, "newest")?;
        let (mut seq, mut previous) = (0, String::new());
        while seq < last {
            let rows = self.audit_after(seq, CHUNK.min(last - seq)).await?;
            for row in &rows {
                seq += 1;
                previous = Columns::read(row)?.hash(&previous, seq);
                if number(row, "seq")? != seq || text(row, "hash")? != previous {
                    return Ok(Some(AuditFault { seq }));
                }
            }
            if rows.is_empty() {
                return Ok(Some(AuditFault { seq: seq + 1 }));
            }
        }
        let complete = newest == last && previous == last_hash;
        Ok((!complete).then_some(AuditFault { seq: last.max(1) }))
    }

    async fn audit_after(&mut self, seq: i64, limit: i64) -> Result<Vec<AnyRow>, StoreError> {
        let sql = "SELECT seq, at, actor_kind, actor_id, org_id, project_id, action, subject_id,
                   correlation_id, hash FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2";
        let rows = query(sql)
            .bind(seq)
            .bind(limit)
            .fetch_all(self.connection())
            .await?;
        Ok(rows)
    }
}

impl From<&AuditEntry<'_>> for Columns {
    fn from(entry: &AuditEntry<'_>) -> Self {
        let AuditEntry {
            at,
            actor_kind,
            actor,
            tenant,
            action,
            subject,
            correlation_id,
        } = *entry;
        Self {
            at: at.as_millisecond(),
            actor_kind: actor_kind.to_owned(),
            actor_id: actor.to_string(),
            org_id: tenant.map(|tenant| tenant.org.to_string()),
            project_id: tenant.and_then(|tenant| Some(tenant.project?.to_string())),
            action: action.to_owned(),
            subject_id: subject.to_string(),
            correlation_id: correlation_id.to_owned(),
        }
    }
}

impl Columns {
    fn read(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            at: number(row, "at")?,
            actor_kind: text(row, "actor_kind")?,
            actor_id: text(row, "actor_id")?,
            org_id: optional_text(row, "org_id")?,
            project_id: optional_text(row, "project_id")?,
            action: text(row, "action")?,
            subject_id: text(row, "subject_id")?,
            correlation_id: text(row, "correlation_id")?,
        })
    }

    /// Every text is preceded by its length, so no two entries have the same bytes.
    fn hash(&self, previous: &str, seq: i64) -> String {
        let Self {
            at,
            actor_kind,
            actor_id,
            org_id,
            project_id,
            action,
            subject_id,
            correlation_id,
        } = self;
        let none = "";
        let texts = [
            previous,
            actor_kind,
            actor_id,
            org_id.as_deref().unwrap_or(none),
            project_id.as_deref().unwrap_or(none),
            action,
            subject_id,
            correlation_id,
        ];
        let mut bytes = format!("audit v1\n{seq}\n{at}\n").into_bytes();
        for text in texts {
            bytes.extend_from_slice(format!("{}:{text}\n", text.len()).as_bytes());
        }
        sha256(&bytes)
    }
}
