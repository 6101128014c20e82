//! The audit log: a chain of entries, each with an HMAC over itself and the previous one.
//!
//! The log is also the outbox: the number of the newest entry grows with every change, in the same
//! transaction. Each replica polls that one row to wake its long polls.

pub(crate) mod archive;
mod chain;
pub(crate) mod entry;
pub(crate) mod log;
pub(crate) mod rollout_command;
mod sign_in_change;

use crate::audit::chain::{CHUNK, Chain};
use crate::audit::entry::{AuditColumns, COLUMNS, Link, StoredEntry};
use crate::error::StoreError;
use crate::row::{id, number, text};
use crate::statement::sql;
use crate::store::Transaction;
use crate::store::audit_event::{AuditChange, AuditEntry};
use control_auth::AuditKey;
use control_domain::Tenant;
use control_wire::OrgId;
use sqlx::query;

/// Result of verifying the whole log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditVerification {
    /// Number, from 1, of the first entry that breaks the chain: this entry or the one before it
    /// was changed or removed.
    pub fault: Option<i64>,
    /// Number of entries, including archived ones.
    pub entries: i64,
    /// Number of entries that are archived and deleted from the database.
    pub archived: i64,
    /// Number of the first entry with an HMAC; `None` if there is none.
    pub keyed_from: Option<i64>,
    /// Link of the newest entry. A copy kept elsewhere proves later that no entries were cut off
    /// the end.
    pub head: String,
}

impl AuditVerification {
    /// Returns true if no fault was found. Only entries with an HMAC are proven unchanged.
    pub fn is_intact(&self) -> bool {
        self.fault.is_none() && (self.entries == 0 || self.keyed_from.is_some())
    }
}

impl Transaction {
    /// Sets the change for the next audit entry of this transaction.
    pub fn note_change(&mut self, change: AuditChange) {
        self.change = change;
    }

    /// Appends an entry and returns its number. Locks the log until the commit.
    pub async fn append_audit(
        &mut self,
        entry: &AuditEntry<'_>,
        key: &AuditKey,
    ) -> Result<i64, StoreError> {
        let head = "UPDATE audit_head SET seq = seq + 1 WHERE id = 1 RETURNING seq, hash";
        let head = sql(head).row(self).await?;
        let head = head.ok_or(StoreError::Corrupt("audit_head"))?;
        let (seq, previous) = (number(&head, "seq")?, text(&head, "hash")?);
        let org_seq = match entry.tenant {
            Some(tenant) => Some(self.next_number(tenant).await?),
            None => None,
        };
        let change = std::mem::take(&mut self.change);
        let columns = AuditColumns::new(entry, org_seq, change);
        let hash = columns.link(seq, &previous, Link::Keyed(key));
        let update = sql("UPDATE audit_head SET hash = $1 WHERE id = 1");
        update.bind(hash.as_str()).run(self).await?;
        columns.insert(self, seq, hash).await?;
        Ok(seq)
    }

    /// The next number in the log of an organization. Numbers entries of earlier releases first.
    async fn next_number(&mut self, tenant: Tenant) -> Result<i64, StoreError> {
        let newest = match self.audit_newest(tenant.org).await? {
            0 => self.archived_number(tenant.org).await?,
            newest => newest,
        };
        let unnumbered = "SELECT seq FROM audit WHERE org_id = $1 AND org_seq IS NULL ORDER BY seq";
        let unnumbered = sql(unnumbered).bind(tenant.org).rows(self).await?;
        let mut last = newest;
        for row in &unnumbered {
            last += 1;
            let update = sql("UPDATE audit SET org_seq = $1 WHERE seq = $2");
            update
                .bind(last)
                .bind(number(row, "seq")?)
                .run(self)
                .await?;
        }
        Ok(last + 1)
    }

    /// Number of the newest entry; 0 if the log is empty.
    pub async fn audit_head(&mut self) -> Result<i64, StoreError> {
        let row = query("SELECT seq FROM audit_head WHERE id = 1")
            .fetch_one(self.connection())
            .await?;
        number(&row, "seq")
    }

    /// Organizations with entries after number `seq`, with the number of the newest entry of each.
    pub async fn orgs_changed_after(&mut self, seq: i64) -> Result<Vec<(OrgId, i64)>, StoreError> {
        let newest = "SELECT org_id, MAX(seq) AS newest FROM audit
                      WHERE seq > $1 AND org_id IS NOT NULL GROUP BY org_id";
        let rows = sql(newest).bind(seq).rows(self).await?;
        let orgs = rows
            .iter()
            .map(|row| Ok((id(row, "org_id")?, number(row, "newest")?)));
        orgs.collect()
    }

    /// Verifies every link from the newest archive to the head, 500 entries at a time. Without the
    /// key, keyed links and archives count as faults.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the log cannot be read.
    pub async fn verify_audit(
        &mut self,
        key: Option<&AuditKey>,
    ) -> Result<AuditVerification, StoreError> {
        loop {
            let archives = self.audit_archives().await?;
            let found = match archive::after(&archives, key) {
                Ok(chain) => self.verify_after(chain, key).await?,
                Err(first) => self.unproven_archive(first).await?,
            };
            // Entries that were archived during the verification appear to be missing: verify
            // again.
            if found.fault.is_none() || archives == self.audit_archives().await? {
                return Ok(found);
            }
        }
    }

    async fn unproven_archive(&mut self, first: i64) -> Result<AuditVerification, StoreError> {
        Ok(AuditVerification {
            fault: Some(first),
            entries: self.audit_head().await?,
            archived: first - 1,
            keyed_from: None,
            head: String::new(),
        })
    }

    async fn verify_after(
        &mut self,
        mut chain: Chain,
        key: Option<&AuditKey>,
    ) -> Result<AuditVerification, StoreError> {
        // A single statement reads a consistent state of both tables, even with concurrent writers.
        let head = "SELECT seq, hash, (SELECT COALESCE(MAX(seq), 0) FROM audit) AS newest
                    FROM audit_head WHERE id = 1";
        let head = query(head).fetch_one(self.connection()).await?;
        let (last, last_hash) = (number(&head, "seq")?, text(&head, "hash")?);
        let archived = chain.seq;
        let newest = number(&head, "newest")?.max(archived);
        let mut fault = None;
        while fault.is_none() && chain.seq < last {
            let rows = self
                .audit_after(chain.seq, CHUNK.min(last - chain.seq))
                .await?;
            if rows.is_empty() {
                fault = Some(chain.seq + 1);
            }
            for entry in &rows {
                if !chain.follow(entry, key) {
                    fault = Some(chain.seq);
                    break;
                }
            }
        }
        let complete = newest == last && chain.previous == last_hash;
        Ok(AuditVerification {
            fault: fault.or((!complete).then_some(last.max(1))),
            entries: last,
            archived,
            keyed_from: chain.keyed.map(|first| first.seq),
            head: last_hash,
        })
    }

    async fn audit_after(&mut self, seq: i64, limit: i64) -> Result<Vec<StoredEntry>, StoreError> {
        let list = COLUMNS;
        let rows = sql(list).bind(seq).bind(limit).rows(self).await?;
        rows.iter().map(StoredEntry::read).collect()
    }
}
