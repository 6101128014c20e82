//! Organizations.

pub(crate) mod membership;
mod quota;
pub(crate) mod removed_member;

use crate::error::StoreError;
use crate::row::{id, text, time, truth, versioned};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{ListFilter, Page, SortColumn, Versioned};
use control_domain::{Name, Org, OrgSecurity};
use control_wire::{OrgId, UserId};
use sqlx::any::AnyRow;

/// Statements that delete the rows of an organization without projects, in an order that respects
/// references.
const DELETES_OF_ORG: &[&str] = &[
    "DELETE FROM identities WHERE org_id = $1",
    "DELETE FROM org_domains WHERE org_id = $1",
    "DELETE FROM sso_connections WHERE org_id = $1",
    "DELETE FROM api_keys WHERE org_id = $1",
    "DELETE FROM invitations WHERE org_id = $1",
    "DELETE FROM memberships WHERE org_id = $1",
    "DELETE FROM signing_keys WHERE org_id = $1",
    "DELETE FROM acme_accounts WHERE org_id = $1",
    "DELETE FROM secrets WHERE org_id = $1",
];

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "o.id",
    columns: &[(SortColumn::Name, "o.name")],
};

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
        let insert = "INSERT INTO orgs (id, name, created_at, version) VALUES ($1, $2, $3, 1)";
        let insert = sql(insert).bind(*id).bind(name).bind(*created_at);
        insert.run(self).await?;
        Ok(())
    }

    /// The organization, if it exists.
    pub async fn org(&mut self, org: OrgId) -> Result<Option<Versioned<Org>>, StoreError> {
        let by_id = sql("SELECT id, name, created_at, version FROM orgs WHERE id = $1");
        by_id.bind(org).one(self).await
    }

    /// Security requirements for members of the organization, if it exists.
    pub async fn org_security(
        &mut self,
        org: OrgId,
    ) -> Result<Option<Versioned<OrgSecurity>>, StoreError> {
        let by_id = sql("SELECT second_factor, version FROM orgs WHERE id = $1");
        by_id.bind(org).one(self).await
    }

    /// Updates the security requirements of the organization with `version`; returns the next one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn update_org_security(
        &mut self,
        org: OrgId,
        security: OrgSecurity,
        version: i64,
    ) -> Result<i64, StoreError> {
        let OrgSecurity { second_factor } = security;
        let update = "UPDATE orgs SET second_factor = $1, version = version + 1
                      WHERE id = $2 AND version = $3";
        let update = sql(update).bind(second_factor).bind(org);
        update.write(self, version).await
    }

    /// Locks the organization until this transaction ends.
    pub async fn lock_org(&mut self, org: OrgId) -> Result<(), StoreError> {
        // Changes no value: the statement makes PostgreSQL lock the row, and SQLite has a single
        // writer.
        let lock = sql("UPDATE orgs SET version = version WHERE id = $1");
        lock.bind(org).run(self).await?;
        Ok(())
    }

    /// The organization of this name, if it exists.
    pub async fn org_by_name(&mut self, name: &Name) -> Result<Option<Versioned<Org>>, StoreError> {
        let by_name = sql("SELECT id, name, created_at, version FROM orgs WHERE name = $1");
        by_name.bind(name).one(self).await
    }

    /// The names of the first organizations, at most `limit`.
    pub async fn first_org_names(&mut self, limit: i64) -> Result<Vec<String>, StoreError> {
        let names = sql("SELECT name FROM orgs ORDER BY id LIMIT $1");
        let rows = names.bind(limit).rows(self).await?;
        rows.iter().map(|row| text(row, "name")).collect()
    }

    /// Organizations with this user as a member.
    pub async fn orgs_of_user(
        &mut self,
        user: UserId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Org>>, StoreError> {
        let list = "SELECT o.id AS id, o.name AS name, o.created_at AS created_at,
                      o.version AS version
                    FROM memberships m JOIN orgs o ON o.id = m.org_id WHERE m.user_id = ?";
        let ListFilter { name, sort } = filter;
        let list = ListQuery::new(list, user).named("o.name", name.as_deref());
        list.sorted(self, &SORTED, sort.as_ref(), page).await
    }

    /// Updates the organization if `version` is stored; returns the next version.
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
        let update =
            "UPDATE orgs SET name = $1, version = version + 1 WHERE id = $2 AND version = $3";
        sql(update).bind(name).bind(*id).write(self, version).await
    }

    /// Returns true if the organization has a project.
    pub async fn has_projects(&mut self, org: OrgId) -> Result<bool, StoreError> {
        let first = sql("SELECT id FROM projects WHERE org_id = $1 LIMIT 1");
        Ok(first.bind(org).row(self).await?.is_some())
    }

    /// Deletes the organization with its members and keys if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Reference`] while it has projects.
    pub async fn delete_org(&mut self, org: OrgId, version: i64) -> Result<(), StoreError> {
        for delete in DELETES_OF_ORG {
            sql(delete).bind(org).run(self).await?;
        }
        let delete = sql("DELETE FROM orgs WHERE id = $1 AND version = $2");
        delete.bind(org).write(self, version).await?;
        Ok(())
    }
}

impl Record for OrgSecurity {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let second_factor = truth(row, "second_factor")?;
        versioned(Self { second_factor }, row)
    }
}

impl Record for Org {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let org = Self {
            id: id(row, "id")?,
            name: Name::stored(text(row, "name")?),
            created_at: time(row, "created_at")?,
        };
        versioned(org, row)
    }
}
