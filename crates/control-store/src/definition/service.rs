//! Services.

use crate::error::StoreError;
use crate::row::{id, number, optional_id, optional_text, text, time, versioned};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{Page, Sort, SortColumn, Versioned};
use control_domain::{Name, Service, Tenant};
use control_wire::{CertificateId, ProjectId, ServiceId, UpstreamId};
use sqlx::any::AnyRow;
use std::collections::BTreeMap;
use uuid::Uuid;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, org_id, project_id, name, host, path_prefix, priority, upstream_id, ",
            "certificate_id, settings, created_at, version FROM services ",
            $rest
        )
    };
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "id",
    columns: &[
        (SortColumn::Name, "name"),
        (SortColumn::Priority, "priority"),
    ],
};

/// Filter of a project's services; absent fields admit all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceFilter {
    /// Limits the list to this name, or to a prefix that ends in `*`.
    pub name: Option<String>,
    /// Sort order; `None` sorts by creation.
    pub sort: Option<Sort>,
}

/// Services that refer to one upstream or certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceUse {
    /// Number of services, at least 1.
    pub count: i64,
    /// First and last of their names in alphabetical order; equal for a single service.
    pub names: (String, String),
}

impl Transaction {
    /// Inserts a new service.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the name is taken in the project.
    pub async fn insert_service(&mut self, service: &Service) -> Result<(), StoreError> {
        let Service {
            id,
            tenant: Tenant { org, project },
            name,
            host,
            path_prefix,
            priority,
            upstream,
            certificate,
            settings,
            created_at,
        } = service;
        let insert = "INSERT INTO services (id, org_id, project_id, name, host, path_prefix,
                      priority, upstream_id, certificate_id, created_at, settings,
                      version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1)";
        let insert = sql(insert).bind(*id).bind(*org).bind(*project).bind(name);
        let insert = insert
            .bind(host.as_deref())
            .bind(path_prefix.as_deref())
            .bind(i64::from(*priority))
            .bind(*upstream)
            .bind(*certificate)
            .bind(*created_at)
            .bind(settings.as_str());
        insert.run(self).await?;
        Ok(())
    }

    /// The service, if it exists.
    pub async fn service(
        &mut self,
        service: ServiceId,
    ) -> Result<Option<Versioned<Service>>, StoreError> {
        sql(select!("WHERE id = $1")).bind(service).one(self).await
    }

    /// The services of a project.
    pub async fn services(
        &mut self,
        project: ProjectId,
        filter: &ServiceFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Service>>, StoreError> {
        let list = ListQuery::new(select!("WHERE project_id = ?"), project)
            .named("name", filter.name.as_deref());
        let sort = filter.sort.as_ref();
        list.sorted(self, &SORTED, sort, page).await
    }

    /// Services that use each of these upstreams; unused upstreams are left out.
    pub async fn services_of_upstreams(
        &mut self,
        project: ProjectId,
        upstreams: &[UpstreamId],
    ) -> Result<BTreeMap<UpstreamId, ServiceUse>, StoreError> {
        let used = "SELECT upstream_id AS used_id, COUNT(*) AS uses, MIN(name) AS first_name,
                    MAX(name) AS last_name FROM services WHERE project_id = ?";
        let list = ListQuery::new(used, project);
        let list = list.one_of("upstream_id", upstreams.iter().copied());
        let rows = list.groups(self, " GROUP BY upstream_id LIMIT ?", i64::MAX);
        rows.await?.iter().map(service_use).collect()
    }

    /// Services that use each of these certificates; unused certificates are left out.
    pub async fn services_of_certificates(
        &mut self,
        project: ProjectId,
        certificates: &[CertificateId],
    ) -> Result<BTreeMap<CertificateId, ServiceUse>, StoreError> {
        let used = "SELECT certificate_id AS used_id, COUNT(*) AS uses, MIN(name) AS first_name,
                    MAX(name) AS last_name FROM services WHERE project_id = ?";
        let list = ListQuery::new(used, project);
        let list = list.one_of("certificate_id", certificates.iter().copied());
        let rows = list.groups(self, " GROUP BY certificate_id LIMIT ?", i64::MAX);
        rows.await?.iter().map(service_use).collect()
    }

    /// Updates the service if `version` is stored; returns the next version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Conflict`] if the name is taken.
    pub async fn update_service(
        &mut self,
        service: &Service,
        version: i64,
    ) -> Result<i64, StoreError> {
        let Service {
            id,
            tenant: _,
            name,
            host,
            path_prefix,
            priority,
            upstream,
            certificate,
            settings,
            created_at: _,
        } = service;
        let update = "UPDATE services SET name = $1, host = $2, path_prefix = $3, priority = $4,
                      upstream_id = $5, certificate_id = $6, settings = $7, version = version + 1
                      WHERE id = $8 AND version = $9";
        let update = sql(update).bind(name).bind(host.as_deref());
        let update = update
            .bind(path_prefix.as_deref())
            .bind(i64::from(*priority))
            .bind(*upstream)
            .bind(*certificate)
            .bind(settings.as_str())
            .bind(*id);
        update.write(self, version).await
    }

    /// Deletes the service if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn delete_service(
        &mut self,
        service: ServiceId,
        version: i64,
    ) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM services WHERE id = $1 AND version = $2");
        delete.bind(service).write(self, version).await?;
        Ok(())
    }
}

/// Reads a row of services grouped by the upstream or certificate that they use.
fn service_use<I: From<Uuid>>(row: &AnyRow) -> Result<(I, ServiceUse), StoreError> {
    let names = (text(row, "first_name")?, text(row, "last_name")?);
    let count = number(row, "uses")?;
    Ok((id(row, "used_id")?, ServiceUse { count, names }))
}

impl Record for Service {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let priority = i32::try_from(number(row, "priority")?);
        let service = Self {
            id: id(row, "id")?,
            tenant: Tenant::project(id(row, "org_id")?, id(row, "project_id")?),
            name: Name::stored(text(row, "name")?),
            host: optional_text(row, "host")?,
            path_prefix: optional_text(row, "path_prefix")?,
            priority: priority.map_err(|_| StoreError::Corrupt("priority"))?,
            upstream: id(row, "upstream_id")?,
            certificate: optional_id(row, "certificate_id")?,
            settings: text(row, "settings")?,
            created_at: time(row, "created_at")?,
        };
        versioned(service, row)
    }
}
