//! API keys.

use crate::error::StoreError;
use crate::row::{creator, id, optional_id, optional_time, text, time, versioned};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{ListFilter, Page, SortColumn, Versioned};
use control_domain::{ApiKey, Name, Scope, Tenant};
use control_wire::{ApiKeyId, OrgId, ProjectId};
use jiff::Timestamp;
use sqlx::any::AnyRow;
use std::collections::BTreeSet;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, org_id, project_id, name, scopes, created_at, expires_at, revoked_at,
             made_by, (SELECT m.role FROM memberships m
               WHERE m.org_id = api_keys.org_id AND m.user_id = api_keys.made_by) AS maker_role,
             (SELECT r.role FROM project_roles r WHERE r.project_id = api_keys.project_id
               AND r.user_id = api_keys.made_by) AS maker_project_role, version FROM api_keys ",
            $rest
        )
    };
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "id",
    columns: &[
        (SortColumn::Name, "name"),
        (
            SortColumn::ExpiresAt,
            "COALESCE(expires_at, 9223372036854775807)",
        ),
    ],
};

impl Transaction {
    /// Inserts a key; only the hash of its secret is stored.
    pub async fn insert_api_key(
        &mut self,
        key: &ApiKey,
        secret_hash: &str,
    ) -> Result<(), StoreError> {
        let ApiKey {
            id,
            tenant: Tenant { org, project },
            name,
            scopes,
            created_at,
            expires_at,
            revoked_at,
            made_by,
        } = key;
        let insert = "INSERT INTO api_keys (id, org_id, project_id, name, scopes, secret_hash,
                      created_at, expires_at, revoked_at, made_by, version)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)";
        sql(insert)
            .bind(*id)
            .bind(*org)
            .bind(*project)
            .bind(name)
            .bind(scopes_text(scopes))
            .bind(secret_hash)
            .bind(*created_at)
            .bind(*expires_at)
            .bind(*revoked_at)
            .bind(made_by.map(|creator| creator.user))
            .run(self)
            .await?;
        Ok(())
    }

    /// The key, if it exists.
    pub async fn api_key(
        &mut self,
        key: ApiKeyId,
    ) -> Result<Option<Versioned<ApiKey>>, StoreError> {
        sql(select!("WHERE id = $1")).bind(key).one(self).await
    }

    /// The key with this hash of its secret, if there is one.
    pub async fn api_key_by_secret(
        &mut self,
        secret_hash: &str,
    ) -> Result<Option<Versioned<ApiKey>>, StoreError> {
        let by_secret = sql(select!("WHERE secret_hash = $1"));
        by_secret.bind(secret_hash).one(self).await
    }

    /// The keys of an organization; `only` restricts the list to keys limited to that project.
    pub async fn api_keys(
        &mut self,
        org: OrgId,
        only: Option<ProjectId>,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<ApiKey>>, StoreError> {
        let ListFilter { name, sort } = filter;
        let list = ListQuery::new(select!("WHERE org_id = ?"), org)
            .and("project_id = ?", only)
            .named("name", name.as_deref());
        let sort = sort.as_ref();
        list.sorted(self, &SORTED, sort, page).await
    }

    /// Returns true if another key of the same organization or project, not ended by `now`, has the
    /// key's name. The caller must hold the writers' lock.
    pub async fn is_api_key_name_taken(
        &mut self,
        key: &ApiKey,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Tenant { org, project } = key.tenant;
        let project = project.map(|id| id.to_string()).unwrap_or_default();
        let other = "SELECT id FROM api_keys
                     WHERE org_id = $1 AND COALESCE(project_id, '') = $2 AND name = $3 AND id <> $4
                       AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $5) LIMIT 1";
        let other = sql(other).bind(org).bind(project).bind(&key.name);
        let row = other.bind(key.id).bind(now).row(self).await?;
        Ok(row.is_some())
    }

    /// Updates the key if `version` is stored; returns the next version. Only name and revocation
    /// change.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn update_api_key(&mut self, key: &ApiKey, version: i64) -> Result<i64, StoreError> {
        let update = "UPDATE api_keys SET revoked_at = $1, name = $2, version = version + 1
                      WHERE id = $3 AND version = $4";
        let update = sql(update).bind(key.revoked_at);
        let update = update.bind(&key.name).bind(key.id);
        update.write(self, version).await
    }

    /// Deletes the key if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn delete_api_key(&mut self, key: ApiKeyId, version: i64) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM api_keys WHERE id = $1 AND version = $2");
        delete.bind(key).write(self, version).await?;
        Ok(())
    }
}

impl Record for ApiKey {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let scopes = text(row, "scopes")?;
        let scopes: Option<BTreeSet<Scope>> = scopes
            .split_ascii_whitespace()
            .map(Scope::from_name)
            .collect();
        let key = Self {
            id: id(row, "id")?,
            tenant: Tenant {
                org: id(row, "org_id")?,
                project: optional_id(row, "project_id")?,
            },
            name: Name::stored(text(row, "name")?),
            // An unreadable scope must be an error: an empty set means full access.
            scopes: scopes.ok_or(StoreError::Corrupt("scopes"))?,
            created_at: time(row, "created_at")?,
            expires_at: optional_time(row, "expires_at")?,
            revoked_at: optional_time(row, "revoked_at")?,
            made_by: creator(row)?,
        };
        versioned(key, row)
    }
}

fn scopes_text(scopes: &BTreeSet<Scope>) -> String {
    let names: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
    names.join(" ")
}
