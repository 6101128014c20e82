//! Signing keys.

use crate::error::StoreError;
use crate::row::{id, named, text, time, versioned};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::Versioned;
use control_auth::PublicKey;
use control_domain::{SigningKey, SigningKeyState};
use control_wire::{OrgId, SigningKeyId};
use sqlx::any::AnyRow;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, org_id, state, public_key, secret_id, created_at, version
             FROM signing_keys ",
            $rest
        )
    };
}

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
        let insert = "INSERT INTO signing_keys (id, org_id, state, public_key, secret_id,
                      created_at, version) VALUES ($1, $2, $3, $4, $5, $6, 1)";
        sql(insert)
            .bind(*id)
            .bind(*org)
            .bind(state.name())
            .bind(public_key.as_str())
            .bind(*secret)
            .bind(*created_at)
            .run(self)
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
        sql(select!("WHERE id = $1")).bind(key).one(self).await
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
        let active = sql(select!("WHERE org_id = $1 AND state = 'active'"));
        active.bind(org).one(self).await
    }
}

impl Record for SigningKey {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let key = Self {
            id: id(row, "id")?,
            org: id(row, "org_id")?,
            state: named(row, "state", SigningKeyState::from_name)?,
            public_key: PublicKey::from_text(text(row, "public_key")?),
            secret: id(row, "secret_id")?,
            created_at: time(row, "created_at")?,
        };
        versioned(key, row)
    }
}
