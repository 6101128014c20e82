//! Projects.

use crate::error::StoreError;
use crate::row::{id, text, time, versioned, written};
use crate::store::Transaction;
use crate::versioned::{Page, Versioned};
use control_domain::{Name, Project};
use control_wire::{OrgId, ProjectId};
use sqlx::any::AnyRow;
use sqlx::query;

impl Transaction {
    /// Inserts a new project.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the name is taken in the organization.
    pub async fn insert_project(&mut self, project: &Project) -> Result<(), StoreError> {
        let Project {
            id,
            org,
            name,
            created_at,
        } = project;
        let sql = "INSERT INTO projects (id, org_id, name, created_at, version)
                   VALUES ($1, $2, $3, $4, 1)";
        query(sql)
            .bind(id.to_string())
            .bind(org.to_string())
            .bind(name.as_str())
            .bind(created_at.as_millisecond())
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// The project, if it exists.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn project(
        &mut self,
        project: ProjectId,
    ) -> Result<Option<Versioned<Project>>, StoreError> {
        let sql = "SELECT id, org_id, name, created_at, version FROM projects WHERE id = $1";
        let row = query(sql)
            .bind(project.to_string())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// The projects of an organization; `only` limits them to one.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn projects(
        &mut self,
        org: OrgId,
        only: Option<ProjectId>,
        page: Page,
    ) -> Result<Vec<Versioned<Project>>, StoreError> {
        let sql = "SELECT id, org_id, name, created_at, version FROM projects
                   WHERE org_id = $1 AND id > $2 AND ($3 = '' OR id = $3) ORDER BY id LIMIT $4";
        let rows = query(sql)
            .bind(org.to_string())
            .bind(page.after_text())
            .bind(only.map(|id| id.to_string()).unwrap_or_default())
            .bind(page.limit)
            .fetch_all(self.connection())
            .await?;
        rows.iter().map(read).collect()
    }

    /// Updates the project that had `version`; gives the next one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Conflict`] if the name is taken.
    pub async fn update_project(
        &mut self,
        project: &Project,
        version: i64,
    ) -> Result<i64, StoreError> {
        let Project {
            id,
            org: _,
            name,
            created_at: _,
        } = project;
        let sql = "UPDATE projects SET name = $1, version = version + 1
                   WHERE id = $2 AND version = $3";
        let done = query(sql)
            .bind(name.as_str())
            .bind(id.to_string())
            .bind(version)
            .execute(self.connection())
            .await?;
        written(&done)?;
        Ok(version + 1)
    }

    /// Deletes the project that had `version`, with all that belongs to it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Reference`] while it has nodes.
    pub async fn delete_project(
        &mut self,
        project: ProjectId,
        version: i64,
    ) -> Result<(), StoreError> {
        let done = query("DELETE FROM projects WHERE id = $1 AND version = $2")
            .bind(project.to_string())
            .bind(version)
            .execute(self.connection())
            .await?;
        written(&done)
    }

    /// Whether the project has a node.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn has_nodes(&mut self, project: ProjectId) -> Result<bool, StoreError> {
        let row = query("SELECT id FROM nodes WHERE project_id = $1 LIMIT 1")
            .bind(project.to_string())
            .fetch_optional(self.connection())
            .await?;
        Ok(row.is_some())
    }
}

fn read(row: &AnyRow) -> Result<Versioned<Project>, StoreError> {
    let project = Project {
        id: id(row, "id")?,
        org: id(row, "org_id")?,
        name: Name::stored(text(row, "name")?),
        created_at: time(row, "created_at")?,
    };
    versioned(project, row)
}
