//! Certificates.

use crate::error::StoreError;
use crate::node::to_json;
use crate::row::{id, json, text, time, versioned};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{Page, Sort, SortColumn, Versioned};
use control_domain::{Certificate, CertificateFacts, Labels, Name, Tenant};
use control_wire::{CertificateId, ProjectId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, org_id, project_id, name, chain_pem, secret_id, hosts, not_before, ",
            "not_after, fingerprint, node_labels, created_at, version FROM certificates ",
            $rest
        )
    };
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "id",
    columns: &[
        (SortColumn::Name, "name"),
        (SortColumn::ExpiresAt, "not_after"),
    ],
};

/// Filter of a project's certificates; absent fields admit all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateFilter {
    /// Limits the list to this name, or to a prefix that ends in `*`.
    pub name: Option<String>,
    /// Only certificates that expire before this time.
    pub expires_before: Option<Timestamp>,
    /// Sort order; `None` sorts by creation.
    pub sort: Option<Sort>,
}

impl Transaction {
    /// Inserts a new certificate.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the name is taken in the project.
    pub async fn insert_certificate(&mut self, value: &Certificate) -> Result<(), StoreError> {
        let Certificate {
            id,
            tenant: Tenant { org, project },
            name,
            facts,
            chain_pem,
            secret,
            node_labels,
            created_at,
        } = value;
        let insert = "INSERT INTO certificates (id, org_id, project_id, name, chain_pem, secret_id,
                      hosts, not_before, not_after, fingerprint, created_at, node_labels, version)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 1)";
        let insert = sql(insert).bind(*id).bind(*org).bind(*project).bind(name);
        let insert = insert
            .bind(chain_pem.as_str())
            .bind(*secret)
            .bind(facts.hosts.join(" "))
            .bind(facts.not_before)
            .bind(facts.not_after)
            .bind(facts.fingerprint.as_str())
            .bind(*created_at)
            .bind(to_json(node_labels.pairs())?);
        insert.run(self).await?;
        Ok(())
    }

    /// The certificate, if it exists.
    pub async fn certificate(
        &mut self,
        certificate: CertificateId,
    ) -> Result<Option<Versioned<Certificate>>, StoreError> {
        let one = sql(select!("WHERE id = $1")).bind(certificate);
        one.one(self).await
    }

    /// The certificates of a project.
    pub async fn certificates(
        &mut self,
        project: ProjectId,
        filter: &CertificateFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Certificate>>, StoreError> {
        let list = ListQuery::new(select!("WHERE project_id = ?"), project)
            .named("name", filter.name.as_deref())
            .and("not_after < ?", filter.expires_before);
        let sort = filter.sort.as_ref();
        list.sorted(self, &SORTED, sort, page).await
    }

    /// Updates the certificate if `version` is stored, and increases its project's renewal counter,
    /// which nodes poll; returns the next version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Conflict`] if the name is taken.
    pub async fn update_certificate(
        &mut self,
        value: &Certificate,
        version: i64,
    ) -> Result<i64, StoreError> {
        let Certificate {
            id,
            tenant,
            name,
            facts,
            chain_pem,
            secret,
            node_labels,
            created_at: _,
        } = value;
        let update = "UPDATE certificates SET name = $1, chain_pem = $2, secret_id = $3,
                      hosts = $4, not_before = $5, not_after = $6, fingerprint = $7,
                      node_labels = $8, version = version + 1 WHERE id = $9 AND version = $10";
        let update = sql(update).bind(name).bind(chain_pem.as_str());
        let update = update
            .bind(*secret)
            .bind(facts.hosts.join(" "))
            .bind(facts.not_before)
            .bind(facts.not_after)
            .bind(facts.fingerprint.as_str())
            .bind(to_json(node_labels.pairs())?)
            .bind(*id);
        let next = update.write(self, version).await?;
        let count = "UPDATE projects SET certificate_renewals = certificate_renewals + 1
                     WHERE id = $1";
        sql(count).bind(tenant.project).run(self).await?;
        Ok(next)
    }

    /// Label sets that the project's certificates require of nodes, without empty sets.
    pub async fn certificate_labels(
        &mut self,
        project: ProjectId,
    ) -> Result<Vec<Labels>, StoreError> {
        let sets = "SELECT DISTINCT node_labels FROM certificates
                    WHERE project_id = $1 AND node_labels <> '{}'";
        let rows = sql(sets).bind(project).rows(self).await?;
        rows.iter()
            .map(|row| Ok(Labels::stored(json(row, "node_labels")?)))
            .collect()
    }

    /// Deletes the certificate if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Reference`] while a service uses it.
    pub async fn delete_certificate(
        &mut self,
        certificate: CertificateId,
        version: i64,
    ) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM certificates WHERE id = $1 AND version = $2");
        delete.bind(certificate).write(self, version).await?;
        Ok(())
    }

    /// Returns true if a service uses the certificate.
    pub async fn certificate_in_use(
        &mut self,
        certificate: CertificateId,
    ) -> Result<bool, StoreError> {
        let first = sql("SELECT id FROM services WHERE certificate_id = $1 LIMIT 1");
        Ok(first.bind(certificate).row(self).await?.is_some())
    }
}

impl Record for Certificate {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let hosts = text(row, "hosts")?;
        let certificate = Self {
            id: id(row, "id")?,
            tenant: Tenant::project(id(row, "org_id")?, id(row, "project_id")?),
            name: Name::stored(text(row, "name")?),
            facts: CertificateFacts {
                hosts: hosts
                    .split(' ')
                    .filter(|host| !host.is_empty())
                    .map(str::to_owned)
                    .collect(),
                not_before: time(row, "not_before")?,
                not_after: time(row, "not_after")?,
                fingerprint: text(row, "fingerprint")?,
            },
            chain_pem: text(row, "chain_pem")?,
            secret: id(row, "secret_id")?,
            node_labels: Labels::stored(json(row, "node_labels")?),
            created_at: time(row, "created_at")?,
        };
        versioned(certificate, row)
    }
}
