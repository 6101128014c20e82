//! Projects.

pub(crate) mod delivery;
pub(crate) mod role;
pub(crate) mod webhook;

use crate::error::StoreError;
use crate::row::{id, named, optional_id, optional_text, text, time, truth, versioned};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{ListFilter, Page, SortColumn, Versioned};
use control_domain::{
    ApprovalRule, Freezes, Name, PolicyRules, Project, ProjectPolicy, WeakerRules,
};
use control_wire::{OrgId, ProjectId};
use sqlx::any::AnyRow;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, org_id, name, approve, refuse_warnings, freezes, weaker_approve,
               weaker_refuse_warnings, weaker_freezes, weaker_asked_by, created_at, version
             FROM projects ",
            $rest
        )
    };
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "id",
    columns: &[(SortColumn::Name, "name")],
};

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
            policy,
            created_at,
        } = project;
        let insert = "INSERT INTO projects (id, org_id, name, approve, created_at, version)
                      VALUES ($1, $2, $3, $4, $5, 1)";
        let insert = sql(insert).bind(*id).bind(*org).bind(name);
        let insert = insert.bind(policy.rules.approve.name());
        insert.bind(*created_at).run(self).await?;
        Ok(())
    }

    /// The project, if it exists.
    pub async fn project(
        &mut self,
        project: ProjectId,
    ) -> Result<Option<Versioned<Project>>, StoreError> {
        sql(select!("WHERE id = $1")).bind(project).one(self).await
    }

    /// The projects of an organization; `only` restricts the list to one project.
    pub async fn projects(
        &mut self,
        org: OrgId,
        only: Option<ProjectId>,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Project>>, StoreError> {
        let ListFilter { name, sort } = filter;
        let list = ListQuery::new(select!("WHERE org_id = ?"), org)
            .and("id = ?", only)
            .named("name", name.as_deref());
        let sort = sort.as_ref();
        list.sorted(self, &SORTED, sort, page).await
    }

    /// Updates the project if `version` is stored; returns the next version.
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
            policy: ProjectPolicy { rules, weaker },
            created_at: _,
        } = project;
        let asked_by = weaker.as_ref().map(|weaker| weaker.asked_by);
        let asked = weaker.as_ref().map_or(rules, |weaker| &weaker.rules);
        // The strictest rule is never requested as a weaker one, and this column has no name for
        // it.
        let asked_rule = Some(asked.approve).filter(|rule| *rule != ApprovalRule::All);
        let update = "UPDATE projects SET name = $1, approve = $2, refuse_warnings = $3,
                        freezes = $4, weaker_approve = $5, weaker_refuse_warnings = $6,
                        weaker_freezes = $7, weaker_asked_by = $8, version = version + 1
                      WHERE id = $9 AND version = $10";
        let update = sql(update).bind(name).bind(rules.approve.name());
        let update = update
            .bind(rules.refuse_warnings)
            .bind(stored(&rules.freezes))
            .bind(asked_by.and(asked_rule).map(ApprovalRule::name))
            .bind(asked.refuse_warnings)
            .bind(stored(&asked.freezes))
            .bind(asked_by);
        update.bind(*id).write(self, version).await
    }

    /// Deletes the project and everything in it, including sealed secrets, if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Reference`] while it has nodes.
    pub async fn delete_project(
        &mut self,
        project: ProjectId,
        version: i64,
    ) -> Result<(), StoreError> {
        self.leave_archives(project).await?;
        let services = sql("DELETE FROM services WHERE project_id = $1");
        services.bind(project).run(self).await?;
        self.delete_managed_certificates(project).await?;
        let certificates = "DELETE FROM certificates WHERE project_id = $1 RETURNING secret_id";
        for row in sql(certificates).bind(project).rows(self).await? {
            let secret = sql("DELETE FROM secrets WHERE id = $1");
            secret.bind(text(&row, "secret_id")?).run(self).await?;
        }
        let webhooks = "DELETE FROM webhooks WHERE project_id = $1 RETURNING secret_id";
        for row in sql(webhooks).bind(project).rows(self).await? {
            let secret = sql("DELETE FROM secrets WHERE id = $1");
            secret.bind(text(&row, "secret_id")?).run(self).await?;
        }
        let delete = sql("DELETE FROM projects WHERE id = $1 AND version = $2");
        delete.bind(project).write(self, version).await?;
        Ok(())
    }

    /// Returns true if the project has a node.
    pub async fn has_nodes(&mut self, project: ProjectId) -> Result<bool, StoreError> {
        let first = sql("SELECT id FROM nodes WHERE project_id = $1 LIMIT 1");
        Ok(first.bind(project).row(self).await?.is_some())
    }
}

impl Record for Project {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let project = Self {
            id: id(row, "id")?,
            org: id(row, "org_id")?,
            name: Name::stored(text(row, "name")?),
            policy: policy(row)?,
            created_at: time(row, "created_at")?,
        };
        versioned(project, row)
    }
}

fn policy(row: &AnyRow) -> Result<ProjectPolicy, StoreError> {
    let rules = PolicyRules {
        approve: named(row, "approve", ApprovalRule::from_name)?,
        refuse_warnings: truth(row, "refuse_warnings")?,
        freezes: freezes(row, "freezes")?,
    };
    let Some(asked_by) = optional_id(row, "weaker_asked_by")? else {
        return Ok(ProjectPolicy {
            rules,
            weaker: None,
        });
    };
    let rule = |name: &str| ApprovalRule::from_name(name).ok_or(StoreError::Corrupt("approve"));
    let approve = optional_text(row, "weaker_approve")?;
    let approve = approve.map_or(Ok(ApprovalRule::All), |name| rule(&name))?;
    let asked = PolicyRules {
        approve,
        refuse_warnings: truth(row, "weaker_refuse_warnings")?,
        freezes: freezes(row, "weaker_freezes")?,
    };
    Ok(ProjectPolicy {
        rules,
        weaker: Some(WeakerRules {
            rules: asked,
            asked_by,
        }),
    })
}

fn stored(freezes: &Freezes) -> String {
    freezes.texts().join(",")
}

fn freezes(row: &AnyRow, column: &'static str) -> Result<Freezes, StoreError> {
    let texts = text(row, column)?;
    let texts = texts.split(',').filter(|text| !text.is_empty());
    Freezes::parse(texts).map_err(|_| StoreError::Corrupt(column))
}
