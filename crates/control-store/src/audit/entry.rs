//! Columns of an entry of the audit log, and its link in the chain.

use crate::error::StoreError;
use crate::row::{number, optional_number, optional_text, text, truth};
use crate::statement::sql;
use crate::store::Transaction;
use crate::store::audit_event::{AuditChange, AuditEntry};
use control_auth::{AuditKey, sha256};
use serde::Serialize;
use sqlx::any::AnyRow;

/// Entries after `$1`, at most `$2`.
pub(crate) const COLUMNS: &str = "SELECT seq, at, actor_kind, actor_id, org_id, project_id,
    action, subject_id, correlation_id, hash, org_seq, actor_name, client_ip, value_before,
    value_after, keyed FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2";

/// Hash that links an entry to the previous one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Link<'a> {
    /// A plain hash, as in entries before the key existed.
    Plain,
    /// An HMAC by the audit key.
    Keyed(&'a AuditKey),
}

/// Columns of an entry.
#[derive(Debug, Serialize)]
pub(crate) struct AuditColumns {
    pub(crate) at: i64,
    actor_kind: String,
    actor_id: String,
    org_id: Option<String>,
    project_id: Option<String>,
    action: String,
    subject_id: String,
    correlation_id: String,
    org_seq: Option<i64>,
    actor_name: Option<String>,
    client_ip: Option<String>,
    value_before: Option<String>,
    value_after: Option<String>,
    pub(crate) is_keyed: bool,
}

/// An entry with its position in the chain.
#[derive(Debug)]
pub(crate) struct StoredEntry {
    /// Number of the entry, from 1.
    pub(crate) seq: i64,
    /// Link of the entry, computed over its columns and the previous link.
    pub(crate) hash: String,
    pub(crate) columns: AuditColumns,
}

impl StoredEntry {
    pub(crate) fn read(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            seq: number(row, "seq")?,
            hash: text(row, "hash")?,
            columns: AuditColumns::read(row)?,
        })
    }
}

impl AuditColumns {
    pub(crate) fn new(entry: &AuditEntry<'_>, org_seq: Option<i64>, change: AuditChange) -> Self {
        let AuditEntry {
            at,
            actor_kind,
            actor,
            actor_name,
            client_ip,
            tenant,
            action,
            subject,
            correlation_id,
        } = *entry;
        let AuditChange { before, after } = change;
        Self {
            at: at.as_millisecond(),
            actor_kind: actor_kind.to_owned(),
            actor_id: actor.to_string(),
            org_id: tenant.map(|tenant| tenant.org.to_string()),
            project_id: tenant.and_then(|tenant| Some(tenant.project?.to_string())),
            action: action.to_owned(),
            subject_id: subject.to_string(),
            correlation_id: correlation_id.to_owned(),
            org_seq,
            actor_name: Some(actor_name.to_owned()),
            client_ip: client_ip.map(|address| address.to_string()),
            value_before: before,
            value_after: after,
            is_keyed: true,
        }
    }

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
            org_seq: optional_number(row, "org_seq")?,
            actor_name: optional_text(row, "actor_name")?,
            client_ip: optional_text(row, "client_ip")?,
            value_before: optional_text(row, "value_before")?,
            value_after: optional_text(row, "value_after")?,
            is_keyed: truth(row, "keyed")?,
        })
    }

    pub(crate) async fn insert(
        self,
        tx: &mut Transaction,
        seq: i64,
        hash: String,
    ) -> Result<(), StoreError> {
        let insert = "INSERT INTO audit (seq, at, actor_kind, actor_id, org_id, project_id, action,
                        subject_id, correlation_id, hash, org_seq, actor_name, client_ip,
                        value_before, value_after, keyed)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 1)";
        let insert = sql(insert).bind(seq).bind(self.at);
        let insert = insert.bind(self.actor_kind).bind(self.actor_id);
        let insert = insert.bind(self.org_id).bind(self.project_id);
        let insert = insert.bind(self.action).bind(self.subject_id);
        let insert = insert.bind(self.correlation_id).bind(hash);
        let insert = insert.bind(self.org_seq).bind(self.actor_name);
        let insert = insert.bind(self.client_ip);
        let insert = insert.bind(self.value_before).bind(self.value_after);
        insert.run(tx).await?;
        Ok(())
    }

    /// Computes the entry's link. Every text is preceded by its length, so different entries never
    /// have the same bytes.
    pub(crate) fn link(&self, seq: i64, previous: &str, link: Link<'_>) -> String {
        let mut bytes = Vec::new();
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend_from_slice(format!("{}:{text}\n", text.len()).as_bytes());
        };
        let version = match link {
            Link::Plain => "v1",
            Link::Keyed(_) => "v2",
        };
        bytes.extend_from_slice(format!("audit {version}\n{seq}\n{}\n", self.at).as_bytes());
        let absent = |value: &Option<String>| value.clone().unwrap_or_default();
        for value in [
            previous,
            &self.actor_kind,
            &self.actor_id,
            &absent(&self.org_id),
            &absent(&self.project_id),
            &self.action,
            &self.subject_id,
            &self.correlation_id,
        ] {
            text(&mut bytes, value);
        }
        let Link::Keyed(key) = link else {
            return sha256(&bytes);
        };
        text(&mut bytes, &self.org_seq.unwrap_or_default().to_string());
        for value in [
            &self.actor_name,
            &self.client_ip,
            &self.value_before,
            &self.value_after,
        ] {
            // An absent value differs from an empty one.
            bytes.push(u8::from(value.is_some()));
            text(&mut bytes, &absent(value));
        }
        key.authenticate(&bytes)
    }
}
