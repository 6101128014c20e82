//! Upstreams and their targets.

use crate::error::StoreError;
use crate::row::{id, named, number, optional_text, text, time, truth, versioned};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{ListFilter, Page, SortColumn, Versioned};
use control_domain::{LoadBalancing, Name, Target, Tenant, Upstream, UpstreamTls};
use control_wire::{ProjectId, UpstreamId};
use sqlx::any::AnyRow;
use std::collections::BTreeMap;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, org_id, project_id, name, load_balancing, tls, tls_server_name, ",
            "created_at, settings, version FROM upstreams ",
            $rest
        )
    };
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "id",
    columns: &[(SortColumn::Name, "name")],
};

/// Targets of a project's upstreams.
const TARGETS: &str = "SELECT t.upstream_id AS upstream_id, t.address AS address,
                         t.weight AS weight
                       FROM upstream_targets t JOIN upstreams u ON u.id = t.upstream_id
                       WHERE u.project_id = ?";

impl Transaction {
    /// Inserts a new upstream with its targets.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the name is taken in the project.
    pub async fn insert_upstream(&mut self, upstream: &Upstream) -> Result<(), StoreError> {
        let Upstream {
            id,
            tenant: Tenant { org, project },
            name,
            load_balancing,
            targets,
            tls,
            settings,
            created_at,
        } = upstream;
        let insert = "INSERT INTO upstreams (id, org_id, project_id, name, load_balancing, tls,
                      tls_server_name, created_at, settings, version)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1)";
        let insert = sql(insert).bind(*id).bind(*org).bind(*project).bind(name);
        let insert = insert
            .bind(load_balancing.name())
            .bind(tls.is_some())
            .bind(server_name(tls.as_ref()))
            .bind(*created_at)
            .bind(settings.as_str());
        insert.run(self).await?;
        self.insert_targets(*id, targets).await
    }

    /// The upstream, if it exists.
    pub async fn upstream(
        &mut self,
        upstream: UpstreamId,
    ) -> Result<Option<Versioned<Upstream>>, StoreError> {
        let one = sql(select!("WHERE id = $1")).bind(upstream);
        let Some(mut found) = one.one::<Upstream>(self).await? else {
            return Ok(None);
        };
        let targets = sql("SELECT upstream_id, address, weight FROM upstream_targets
                           WHERE upstream_id = $1 ORDER BY position");
        for row in targets.bind(upstream).rows(self).await? {
            found.value.targets.push(target(&row)?);
        }
        Ok(Some(found))
    }

    /// The upstreams of a project.
    pub async fn upstreams(
        &mut self,
        project: ProjectId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Upstream>>, StoreError> {
        let ListFilter { name, sort } = filter;
        let list =
            ListQuery::new(select!("WHERE project_id = ?"), project).named("name", name.as_deref());
        let mut found: Vec<Versioned<Upstream>> =
            list.sorted(self, &SORTED, sort.as_ref(), page).await?;
        let targets = ListQuery::new(TARGETS, project);
        let targets = targets.one_of("t.upstream_id", found.iter().map(|one| one.value.id));
        let tail = " ORDER BY t.upstream_id, t.position LIMIT ?";
        let mut by_upstream: BTreeMap<UpstreamId, Vec<Target>> = BTreeMap::new();
        for row in targets.groups(self, tail, i64::MAX).await? {
            let upstream = id(&row, "upstream_id")?;
            by_upstream.entry(upstream).or_default().push(target(&row)?);
        }
        for upstream in &mut found {
            let own = by_upstream.remove(&upstream.value.id);
            upstream.value.targets = own.unwrap_or_default();
        }
        Ok(found)
    }

    /// Updates the upstream if `version` is stored; returns the next version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Conflict`] if the name is taken.
    pub async fn update_upstream(
        &mut self,
        upstream: &Upstream,
        version: i64,
    ) -> Result<i64, StoreError> {
        let Upstream {
            id,
            tenant: _,
            name,
            load_balancing,
            targets,
            tls,
            settings,
            created_at: _,
        } = upstream;
        let update = "UPDATE upstreams SET name = $1, load_balancing = $2, tls = $3,
                      tls_server_name = $4, settings = $5, version = version + 1
                      WHERE id = $6 AND version = $7";
        let update = sql(update).bind(name).bind(load_balancing.name());
        let update = update.bind(tls.is_some()).bind(server_name(tls.as_ref()));
        let update = update.bind(settings.as_str()).bind(*id);
        let version = update.write(self, version).await?;
        let delete = sql("DELETE FROM upstream_targets WHERE upstream_id = $1");
        delete.bind(*id).run(self).await?;
        self.insert_targets(*id, targets).await?;
        Ok(version)
    }

    /// Deletes the upstream and its targets if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Reference`] while a service sends requests to it.
    pub async fn delete_upstream(
        &mut self,
        upstream: UpstreamId,
        version: i64,
    ) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM upstreams WHERE id = $1 AND version = $2");
        delete.bind(upstream).write(self, version).await?;
        Ok(())
    }

    /// Returns true if a service sends requests to the upstream.
    pub async fn upstream_in_use(&mut self, upstream: UpstreamId) -> Result<bool, StoreError> {
        let first = sql("SELECT id FROM services WHERE upstream_id = $1 LIMIT 1");
        Ok(first.bind(upstream).row(self).await?.is_some())
    }

    async fn insert_targets(
        &mut self,
        upstream: UpstreamId,
        targets: &[Target],
    ) -> Result<(), StoreError> {
        for (position, Target { address, weight }) in (0_i64..).zip(targets) {
            let insert = sql(
                "INSERT INTO upstream_targets (upstream_id, position, address, weight)
                              VALUES ($1, $2, $3, $4)",
            );
            let insert = insert.bind(upstream).bind(position).bind(address.as_str());
            insert.bind(i64::from(*weight)).run(self).await?;
        }
        Ok(())
    }
}

impl Record for Upstream {
    /// Reads an upstream without its targets, which are separate rows.
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let server_name = optional_text(row, "tls_server_name")?;
        let upstream = Self {
            id: id(row, "id")?,
            tenant: Tenant::project(id(row, "org_id")?, id(row, "project_id")?),
            name: Name::stored(text(row, "name")?),
            load_balancing: named(row, "load_balancing", LoadBalancing::from_name)?,
            targets: Vec::new(),
            tls: truth(row, "tls")?.then_some(UpstreamTls { server_name }),
            settings: text(row, "settings")?,
            created_at: time(row, "created_at")?,
        };
        versioned(upstream, row)
    }
}

fn target(row: &AnyRow) -> Result<Target, StoreError> {
    let weight = u32::try_from(number(row, "weight")?);
    Ok(Target {
        address: text(row, "address")?,
        weight: weight.map_err(|_| StoreError::Corrupt("weight"))?,
    })
}

fn server_name(tls: Option<&UpstreamTls>) -> Option<&str> {
    tls.and_then(|tls| tls.server_name.as_deref())
}
