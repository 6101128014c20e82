//! Signing keys.

use crate::error::StoreError;
use crate::row::{id, named, optional_id, optional_text, optional_time, text, time, versioned};
use crate::statement::list::ListQuery;
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{Page, PageOrder, Versioned};
use control_auth::PublicKey;
use control_domain::{SigningKey, SigningKeyState};
use control_wire::{OrgId, SigningKeyId};
use sqlx::any::AnyRow;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, org_id, state, public_key, secret_id, endorsed_by, endorsement, created_at,
             deactivated_at, version FROM signing_keys ",
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
            endorsement,
            created_at,
            deactivated_at,
        } = key;
        let (endorsed_by, endorsement) = endorsement.clone().unzip();
        let insert = "INSERT INTO signing_keys (id, org_id, state, public_key, secret_id,
                      endorsed_by, endorsement, created_at, deactivated_at, version)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1)";
        sql(insert)
            .bind(*id)
            .bind(*org)
            .bind(state.name())
            .bind(public_key.as_str())
            .bind(*secret)
            .bind(endorsed_by)
            .bind(endorsement)
            .bind(*created_at)
            .bind(*deactivated_at)
            .run(self)
            .await?;
        Ok(())
    }

    /// The key, if it exists.
    pub async fn signing_key(
        &mut self,
        key: SigningKeyId,
    ) -> Result<Option<Versioned<SigningKey>>, StoreError> {
        sql(select!("WHERE id = $1")).bind(key).one(self).await
    }

    /// The active signing key of an organization.
    pub async fn active_signing_key(
        &mut self,
        org: OrgId,
    ) -> Result<Option<Versioned<SigningKey>>, StoreError> {
        let active = sql(select!("WHERE org_id = $1 AND state = 'active'"));
        active.bind(org).one(self).await
    }

    /// The oldest standby key of an organization.
    pub async fn standby_signing_key(
        &mut self,
        org: OrgId,
    ) -> Result<Option<Versioned<SigningKey>>, StoreError> {
        let standby = sql(select!(
            "WHERE org_id = $1 AND state = 'standby' ORDER BY id LIMIT 1"
        ));
        standby.bind(org).one(self).await
    }

    /// Keys that are not deactivated; the domain limits their number.
    pub async fn verifying_signing_keys(
        &mut self,
        org: OrgId,
    ) -> Result<Vec<Versioned<SigningKey>>, StoreError> {
        let list = sql(select!(
            "WHERE org_id = $1 AND state <> 'deactivated' AND id > $2 ORDER BY id LIMIT $3"
        ));
        let all = Page {
            after: None,
            limit: 100,
            order: PageOrder::Oldest,
        };
        list.bind(org).page(self, all).await
    }

    /// The newest deactivated keys of an organization, at most `limit`.
    pub async fn ended_signing_keys(
        &mut self,
        org: OrgId,
        limit: i64,
    ) -> Result<Vec<Versioned<SigningKey>>, StoreError> {
        let list = select!("WHERE org_id = $1 AND state = 'deactivated' ORDER BY id DESC LIMIT $2");
        let rows = sql(list).bind(org).bind(limit).rows(self).await?;
        rows.iter().map(SigningKey::read).collect()
    }

    /// The keys of an organization.
    pub async fn signing_keys(
        &mut self,
        org: OrgId,
        page: Page,
    ) -> Result<Vec<Versioned<SigningKey>>, StoreError> {
        let list = ListQuery::new(select!("WHERE org_id = ?"), org);
        list.page(self, "id", page).await
    }

    /// Updates the state of the key with `version`; returns the next one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Conflict`] if another key is active.
    pub async fn update_signing_key(
        &mut self,
        key: &SigningKey,
        version: i64,
    ) -> Result<i64, StoreError> {
        let update =
            "UPDATE signing_keys SET state = $1, deactivated_at = $2, version = version + 1
                      WHERE id = $3 AND version = $4";
        let update = sql(update)
            .bind(key.state.name())
            .bind(key.deactivated_at)
            .bind(key.id);
        update.write(self, version).await
    }
}

impl Record for SigningKey {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let endorsed_by = optional_id(row, "endorsed_by")?;
        let endorsement = optional_text(row, "endorsement")?;
        let key = Self {
            id: id(row, "id")?,
            org: id(row, "org_id")?,
            state: named(row, "state", SigningKeyState::from_name)?,
            public_key: PublicKey::from_text(text(row, "public_key")?),
            secret: id(row, "secret_id")?,
            endorsement: endorsed_by.zip(endorsement),
            created_at: time(row, "created_at")?,
            deactivated_at: optional_time(row, "deactivated_at")?,
        };
        versioned(key, row)
    }
}
