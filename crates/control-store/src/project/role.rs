//! Roles of members in single projects, in addition to those in the organization.

use crate::error::StoreError;
use crate::row::{id, named, number, text, time, versioned};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{Page, Sort, SortColumn, Versioned};
use control_domain::{Name, ProjectRole, Role};
use control_wire::{OrgId, ProjectId, UserId};
use sqlx::any::AnyRow;

/// A role in a single project, with the names of the member and the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedProjectRole {
    /// Role and its holder.
    pub given: ProjectRole,
    /// The member's name.
    pub user_name: Name,
    /// The project's name.
    pub project_name: Name,
}

macro_rules! select {
    ($where:literal) => {
        concat!(
            "SELECT p.org_id AS org_id, r.project_id AS project_id, r.user_id AS user_id,
               r.role AS role, r.created_at AS created_at, r.version AS version
             FROM project_roles r JOIN projects p ON p.id = r.project_id ",
            $where
        )
    };
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "r.user_id",
    columns: &[(SortColumn::CreatedAt, "r.created_at")],
};

impl Transaction {
    /// Sets the member's role, replacing an earlier one; returns the version.
    pub async fn put_project_role(&mut self, given: &ProjectRole) -> Result<i64, StoreError> {
        let put = "INSERT INTO project_roles (project_id, user_id, role, created_at, version)
                   VALUES ($1, $2, $3, $4, 1)
                   ON CONFLICT (project_id, user_id) DO UPDATE
                     SET role = $3, version = project_roles.version + 1
                   RETURNING version";
        let put = sql(put).bind(given.project).bind(given.user);
        let put = put.bind(given.role.name()).bind(given.created_at);
        let row = put.row(self).await?.ok_or(StoreError::Stale)?;
        number(&row, "version")
    }

    /// The member's role in this project, apart from the role in the organization.
    pub async fn project_role(
        &mut self,
        project: ProjectId,
        user: UserId,
    ) -> Result<Option<Versioned<ProjectRole>>, StoreError> {
        let found = sql(select!("WHERE r.project_id = $1 AND r.user_id = $2"));
        found.bind(project).bind(user).one(self).await
    }

    /// Members with a role in this project.
    pub async fn project_roles(
        &mut self,
        project: ProjectId,
        sort: Option<&Sort>,
        page: Page,
    ) -> Result<Vec<Versioned<ProjectRole>>, StoreError> {
        let list = ListQuery::new(select!("WHERE r.project_id = ?"), project);
        list.sorted(self, &SORTED, sort, page).await
    }

    /// Project roles in an organization, at most `limit`, sorted by the names of member and
    /// project.
    pub async fn project_roles_of_org(
        &mut self,
        org: OrgId,
        limit: i64,
    ) -> Result<Vec<NamedProjectRole>, StoreError> {
        let roles = "SELECT p.org_id AS org_id, r.project_id AS project_id, r.user_id AS user_id,
                       r.role AS role, r.created_at AS created_at, r.version AS version,
                       u.name AS user_name, p.name AS project_name
                     FROM projects p JOIN project_roles r ON r.project_id = p.id
                       JOIN users u ON u.id = r.user_id
                     WHERE p.org_id = $1
                     ORDER BY u.name, u.id, p.name LIMIT $2";
        let rows = sql(roles).bind(org).bind(limit).rows(self).await?;
        let named = rows.iter().map(|row| {
            Ok(NamedProjectRole {
                given: ProjectRole::read(row)?.value,
                user_name: Name::stored(text(row, "user_name")?),
                project_name: Name::stored(text(row, "project_name")?),
            })
        });
        named.collect()
    }

    /// Removes the role if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn delete_project_role(
        &mut self,
        project: ProjectId,
        user: UserId,
        version: i64,
    ) -> Result<(), StoreError> {
        let delete =
            "DELETE FROM project_roles WHERE project_id = $1 AND user_id = $2 AND version = $3";
        let delete = sql(delete).bind(project).bind(user);
        delete.write(self, version).await?;
        Ok(())
    }

    /// Removes all roles of a user in the projects of an organization.
    pub async fn delete_project_roles(
        &mut self,
        org: OrgId,
        user: UserId,
    ) -> Result<(), StoreError> {
        let delete = "DELETE FROM project_roles WHERE user_id = $1
                      AND project_id IN (SELECT id FROM projects WHERE org_id = $2)";
        sql(delete).bind(user).bind(org).run(self).await?;
        Ok(())
    }
}

impl Record for ProjectRole {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let given = Self {
            org: id(row, "org_id")?,
            project: id(row, "project_id")?,
            user: id(row, "user_id")?,
            role: named(row, "role", Role::from_name)?,
            created_at: time(row, "created_at")?,
        };
        versioned(given, row)
    }
}
