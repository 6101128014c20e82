//! Sealed secrets.

use crate::error::StoreError;
use crate::row::{id, optional_id, text, time, written};
use crate::statement::Write;
use crate::store::Transaction;
use control_auth::Sealed;
use control_wire::{OrgId, SecretId};
use jiff::Timestamp;
use sqlx::any::AnyRow;
use sqlx::query;
use std::collections::BTreeSet;

/// A sealed secret as stored; the context of the seal is its identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSecret {
    /// UUID of version 7.
    pub id: SecretId,
    /// The organization; `None` for the installation as a whole.
    pub org: Option<OrgId>,
    /// Bytes sealed by the master key.
    pub sealed: Sealed,
    /// Time of creation.
    pub created_at: Timestamp,
}

impl Transaction {
    /// Inserts a new secret.
    pub async fn insert_secret(&mut self, secret: &StoredSecret) -> Result<(), StoreError> {
        let StoredSecret {
            id,
            org,
            sealed,
            created_at,
        } = secret;
        let sql = "INSERT INTO secrets (id, org_id, master_key, sealed, created_at)
                   VALUES ($1, $2, $3, $4, $5)";
        query(sql)
            .bind(id.to_string())
            .bind(org.map(|org| org.to_string()))
            .bind(&sealed.master_key)
            .bind(&sealed.text)
            .bind(created_at.as_millisecond())
            .write_in(self)
            .await?;
        Ok(())
    }

    /// The secret, if it exists.
    pub async fn secret(&mut self, secret: SecretId) -> Result<Option<StoredSecret>, StoreError> {
        let sql = "SELECT id, org_id, master_key, sealed, created_at FROM secrets WHERE id = $1";
        let row = query(sql)
            .bind(secret.to_string())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// At most `limit` secrets sealed by another key than `master_key`.
    pub async fn secrets_not_sealed_with(
        &mut self,
        master_key: &str,
        limit: i64,
    ) -> Result<Vec<StoredSecret>, StoreError> {
        let sql = "SELECT id, org_id, master_key, sealed, created_at FROM secrets
                   WHERE master_key <> $1 ORDER BY id LIMIT $2";
        let rows = query(sql)
            .bind(master_key)
            .bind(limit)
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(read).collect()
    }

    /// Names of the master keys that at least one secret is sealed with.
    pub async fn master_keys_in_use(&mut self) -> Result<BTreeSet<String>, StoreError> {
        let rows = query("SELECT master_key FROM secrets UNION SELECT master_key FROM totp")
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(|row| text(row, "master_key")).collect()
    }

    /// Deletes a secret.
    ///
    /// # Errors
    ///
    /// [`StoreError::Reference`] while it is referred to, or [`StoreError::Stale`] if it does not
    /// exist.
    pub async fn delete_secret(&mut self, secret: SecretId) -> Result<(), StoreError> {
        let done = query("DELETE FROM secrets WHERE id = $1")
            .bind(secret.to_string())
            .write_in(self)
            .await?;
        written(&done)
    }

    /// Replaces the sealed form by one under another master key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if it does not exist.
    pub async fn reseal_secret(
        &mut self,
        secret: SecretId,
        sealed: &Sealed,
    ) -> Result<(), StoreError> {
        let done = query("UPDATE secrets SET master_key = $1, sealed = $2 WHERE id = $3")
            .bind(&sealed.master_key)
            .bind(&sealed.text)
            .bind(secret.to_string())
            .write_in(self)
            .await?;
        written(&done)
    }
}

fn read(row: &AnyRow) -> Result<StoredSecret, StoreError> {
    Ok(StoredSecret {
        id: id(row, "id")?,
        org: optional_id(row, "org_id")?,
        sealed: Sealed {
            master_key: text(row, "master_key")?,
            text: text(row, "sealed")?,
        },
        created_at: time(row, "created_at")?,
    })
}
