//! Signing keys.

use crate::error::StoreError;
use crate::row::{id, named, text, time, versioned};
use crate::store::Transaction;
use crate::versioned::Versioned;
use control_auth::PublicKey;
use control_domain::{SigningKey, SigningKeyState};
use control_wire::{OrgId, SigningKeyId};
use sqlx::any::AnyRow;
use sqlx::query;

impl Transaction {
    /// Inserts a new key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the organization has another active key.
    pub async fn insert_signing_key(&mut self, key: &SigningKey) -> Result<(), StoreError> {
        let SigningKey {
            id,
            org,
            state,
            public_key,
            secret,
            created_at,
        } = key;
        let sql = "INSERT INTO signing_keys (id, org_id, state, public_key, secret_id, created_at,
                   version) VALUES ($1, $2, $3, $4, $5, $6, 1)";
        query(sql)
            .bind(id.to_string())
            .bind(org.to_string())
            .bind(state.name())
            .bind(public_key.as_str())
            .bind(secret.to_string())
            .bind(created_at.as_millisecond())
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// The key, if it exists.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn signing_key(
        &mut self,
        key: SigningKeyId,
    ) -> Result<Option<Versioned<SigningKey>>, StoreError> {
        let sql = "SELECT id, org_id, state, public_key, secret_id, created_at, version
                   FROM signing_keys WHERE id = $1";
        let row = query(sql)
            .bind(key.to_string())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// The key that an organization signs with.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn active_signing_key(
        &mut self,
        org: OrgId,
    ) -> Result<Option<Versioned<SigningKey>>, StoreError> {
        let sql = "SELECT id, org_id, state, public_key, secret_id, created_at, version
                   FROM signing_keys WHERE org_id = $1 AND state = 'active'";
        let row = query(sql)
            .bind(org.to_string())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }
}

fn read(row: &AnyRow) -> Result<Versioned<SigningKey>, StoreError> {
    let key = SigningKey {
        id: id(row, "id")?,
        org: id(row, "org_id")?,
        state: named(row, "state", SigningKeyState::from_name)?,
        public_key: PublicKey::from_text(text(row, "public_key")?),
        secret: id(row, "secret_id")?,
        created_at: time(row, "created_at")?,
    };
    versioned(key, row)
}
