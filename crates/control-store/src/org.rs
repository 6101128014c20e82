//! Organizations.

use crate::error::StoreError;
use crate::row::{id, text, time, versioned, written};
use crate::store::Transaction;
use crate::versioned::{Page, Versioned};
use control_domain::{Name, Org};
use control_wire::{OrgId, UserId};
use sqlx::any::AnyRow;
use sqlx::query;

impl Transaction {
    /// Inserts a new organization.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the name is taken.
    pub async fn insert_org(&mut self, org: &Org) -> Result<(), StoreError> {
        let Org {
            id,
            name,
            created_at,
        } = org;
        query("INSERT INTO orgs (id, name, created_at, version) VALUES ($1, $2, $3, 1)")
            .bind(id.to_string())
            .bind(name.as_str())
            .bind(created_at.as_millisecond())
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// The organization, if it exists.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn org(&mut self, org: OrgId) -> Result<Option<Versioned<Org>>, StoreError> {
        let row = query("SELECT id, name, created_at, version FROM orgs WHERE id = $1")
            .bind(org.to_string())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// The organization of this name, if it exists.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn org_by_name(&mut self, name: &Name) -> Result<Option<Versioned<Org>>, StoreError> {
        let row = query("SELECT id, name, created_at, version FROM orgs WHERE name = $1")
            .bind(name.as_str())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// The organizations that a user is a member of.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn orgs_of_user(
        &mut self,
        user: UserId,
        page: Page,
    ) -> Result<Vec<Versioned<Org>>, StoreError> {
        let sql = "SELECT o.id AS id, o.name AS name, o.created_at AS created_at,
                     o.version AS version
                   FROM memberships m JOIN orgs o ON o.id = m.org_id
                   WHERE m.user_id = $1 AND o.id > $2 ORDER BY o.id LIMIT $3";
        let rows = query(sql)
            .bind(user.to_string())
            .bind(page.after_text())
            .bind(page.limit)
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(read).collect()
    }

    /// Updates the organization that had `version`; gives the next one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Conflict`] if the name is taken.
    pub async fn update_org(&mut self, org: &Org, version: i64) -> Result<i64, StoreError> {
        let Org {
            id,
            name,
            created_at: _,
        } = org;
        let sql = "UPDATE orgs SET name = $1, version = version + 1 WHERE id = $2 AND version = $3";
        let done = query(sql)
            .bind(name.as_str())
            .bind(id.to_string())
            .bind(version)
            .execute(self.connection())
            .await?;
        written(&done)?;
        Ok(version + 1)
    }
}

fn read(row: &AnyRow) -> Result<Versioned<Org>, StoreError> {
    let org = Org {
        id: id(row, "id")?,
        name: Name::stored(text(row, "name")?),
        created_at: time(row, "created_at")?,
    };
    versioned(org, row)
}
