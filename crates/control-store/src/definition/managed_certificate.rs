//! Managed certificates.

pub(crate) mod account;
pub(crate) mod challenge;

use crate::error::StoreError;
use crate::node::to_json;
use crate::row::{
    id, json, named, number, optional_id, optional_text, optional_time, text, time, versioned,
};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{ListFilter, Page, SortColumn, Versioned};
use control_domain::{
    CertificateKeyType, Email, IssuanceError, IssuanceProgress, Labels, ManagedCertificate, Name,
    Tenant,
};
use control_wire::{CertificateId, ManagedCertificateId, ProjectId, SecretId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, org_id, project_id, name, hosts, directory, email, key_type, node_labels, certificate_id,
               order_url, order_secret_id, next_at, failures, error_kind, error_message, error_at, window_start,
               window_end, window_ask_at, created_at, version FROM managed_certificates ",
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
    /// Inserts a new managed certificate.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the name is taken in the project.
    pub async fn insert_managed_certificate(
        &mut self,
        value: &ManagedCertificate,
    ) -> Result<(), StoreError> {
        let ManagedCertificate {
            id,
            tenant: Tenant { org, project },
            name,
            hosts,
            directory,
            email,
            key_type,
            node_labels,
            certificate,
            progress,
            created_at,
        } = value;
        let insert = "INSERT INTO managed_certificates (id, org_id, project_id, name, hosts, directory, email,
                        key_type, node_labels, certificate_id, next_at, failures, created_at, version)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 1)";
        let insert = sql(insert).bind(*id).bind(*org).bind(*project).bind(name);
        let insert = insert
            .bind(hosts.join(" "))
            .bind(directory.as_str())
            .bind(email.as_str())
            .bind(key_type.name())
            .bind(to_json(node_labels.pairs())?)
            .bind(*certificate)
            .bind(progress.next_at)
            .bind(i64::from(progress.failures))
            .bind(*created_at);
        insert.run(self).await?;
        Ok(())
    }

    /// The managed certificate, if it exists.
    pub async fn managed_certificate(
        &mut self,
        id: ManagedCertificateId,
    ) -> Result<Option<Versioned<ManagedCertificate>>, StoreError> {
        sql(select!("WHERE id = $1")).bind(id).one(self).await
    }

    /// The managed certificate that renews a certificate, if there is one.
    pub async fn manager_of(
        &mut self,
        certificate: CertificateId,
    ) -> Result<Option<ManagedCertificateId>, StoreError> {
        let found = sql("SELECT id FROM managed_certificates WHERE certificate_id = $1 LIMIT 1");
        let row = found.bind(certificate).row(self).await?;
        row.map(|row| id(&row, "id")).transpose()
    }

    /// The managed certificates of a project.
    pub async fn managed_certificates(
        &mut self,
        project: ProjectId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<ManagedCertificate>>, StoreError> {
        let ListFilter { name, sort } = filter;
        let list = ListQuery::new(select!("WHERE project_id = ?"), project);
        let list = list.named("name", name.as_deref());
        list.sorted(self, &SORTED, sort.as_ref(), page).await
    }

    /// Number of managed certificates of a project.
    pub async fn count_managed_certificates(
        &mut self,
        project: ProjectId,
    ) -> Result<i64, StoreError> {
        let count = "SELECT COUNT(*) AS used FROM managed_certificates WHERE project_id = $1";
        let row = sql(count).bind(project).row(self).await?;
        row.map_or(Ok(0), |row| number(&row, "used"))
    }

    /// Up to `limit` managed certificates with an attempt or a request for the renewal window due
    /// at `now`: longest overdue first, at most `per_org` per organization.
    pub async fn due_managed_certificates(
        &mut self,
        now: Timestamp,
        per_org: i64,
        limit: i64,
    ) -> Result<Vec<Versioned<ManagedCertificate>>, StoreError> {
        let due = select!(
            "WHERE id IN (SELECT due.id FROM (
               SELECT id, ROW_NUMBER() OVER (PARTITION BY org_id ORDER BY next_at, id) AS place
               FROM managed_certificates WHERE next_at <= $1 OR window_ask_at <= $2) due
             WHERE due.place <= $3) ORDER BY next_at, id LIMIT $4"
        );
        let due = sql(due).bind(now).bind(now).bind(per_org).bind(limit);
        let rows = due.rows(self).await?;
        rows.iter().map(ManagedCertificate::read).collect()
    }

    /// Updates the settings if `version` is stored; returns the next version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`], or [`StoreError::Conflict`] if the name is taken.
    pub async fn update_managed_certificate(
        &mut self,
        value: &ManagedCertificate,
        version: i64,
    ) -> Result<i64, StoreError> {
        let ManagedCertificate {
            id,
            tenant: _,
            name,
            hosts,
            directory,
            email,
            key_type,
            node_labels,
            certificate: _, // `Transaction::write_progress`
            progress: _,
            created_at: _,
        } = value;
        let update =
            "UPDATE managed_certificates SET name = $1, hosts = $2, directory = $3, email = $4,
                        key_type = $5, node_labels = $6, version = version + 1
                      WHERE id = $7 AND version = $8";
        let update = sql(update).bind(name).bind(hosts.join(" "));
        let update = update
            .bind(directory.as_str())
            .bind(email.as_str())
            .bind(key_type.name())
            .bind(to_json(node_labels.pairs())?)
            .bind(*id);
        update.write(self, version).await
    }

    /// Stores progress and obtained certificate; the version does not change.
    pub async fn write_progress(&mut self, value: &ManagedCertificate) -> Result<(), StoreError> {
        let IssuanceProgress {
            order_url,
            order_secret,
            next_at,
            failures,
            error,
            window,
            window_ask_at,
        } = &value.progress;
        let error = error.as_ref();
        let update = "UPDATE managed_certificates SET certificate_id = $1, order_url = $2, order_secret_id = $3,
                        next_at = $4, failures = $5, error_kind = $6, error_message = $7, error_at = $8,
                        window_start = $9, window_end = $10, window_ask_at = $11
                      WHERE id = $12";
        let update = sql(update)
            .bind(value.certificate)
            .bind(order_url.as_deref())
            .bind(*order_secret)
            .bind(*next_at)
            .bind(i64::from(*failures))
            .bind(error.map(|error| error.kind.as_str()))
            .bind(error.map(|error| error.message.as_str()))
            .bind(error.map(|error| error.at))
            .bind(window.map(|(start, _)| start))
            .bind(window.map(|(_, end)| end))
            .bind(*window_ask_at);
        update.bind(value.id).run(self).await?;
        Ok(())
    }

    /// Makes an attempt due at `now`.
    pub async fn make_issuance_due(
        &mut self,
        id: ManagedCertificateId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let update = sql("UPDATE managed_certificates SET next_at = $1 WHERE id = $2");
        update.bind(now).bind(id).run(self).await?;
        Ok(())
    }

    /// Deletes the order in progress: its challenges, its URL and its private key.
    pub async fn forget_issuance(&mut self, value: &ManagedCertificate) -> Result<(), StoreError> {
        self.delete_challenges(value.id).await?;
        let forget = "UPDATE managed_certificates SET order_url = NULL, order_secret_id = NULL WHERE id = $1";
        sql(forget).bind(value.id).run(self).await?;
        if let Some(secret) = value.progress.order_secret {
            self.forget_secret(secret).await?;
        }
        Ok(())
    }

    /// Deletes the managed certificate and its order in progress if `version` is stored. The
    /// obtained certificate is kept.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn delete_managed_certificate(
        &mut self,
        value: &ManagedCertificate,
        version: i64,
    ) -> Result<(), StoreError> {
        self.forget_issuance(value).await?;
        let delete = sql("DELETE FROM managed_certificates WHERE id = $1 AND version = $2");
        delete.bind(value.id).write(self, version).await?;
        Ok(())
    }

    /// Deletes the managed certificates of a project, and the private keys of their orders.
    pub(crate) async fn delete_managed_certificates(
        &mut self,
        project: ProjectId,
    ) -> Result<(), StoreError> {
        let delete =
            "DELETE FROM managed_certificates WHERE project_id = $1 RETURNING order_secret_id";
        for row in sql(delete).bind(project).rows(self).await? {
            if let Some(secret) = optional_id(&row, "order_secret_id")? {
                self.forget_secret(secret).await?;
            }
        }
        Ok(())
    }

    /// Deletes a secret if it exists.
    async fn forget_secret(&mut self, secret: SecretId) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM secrets WHERE id = $1");
        delete.bind(secret).run(self).await?;
        Ok(())
    }
}

impl Record for ManagedCertificate {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let hosts = text(row, "hosts")?;
        let failures = u32::try_from(number(row, "failures")?);
        let certificate = Self {
            id: id(row, "id")?,
            tenant: Tenant::project(id(row, "org_id")?, id(row, "project_id")?),
            name: Name::stored(text(row, "name")?),
            hosts: hosts.split(' ').map(str::to_owned).collect(),
            directory: text(row, "directory")?,
            email: Email::stored(text(row, "email")?),
            key_type: named(row, "key_type", CertificateKeyType::from_name)?,
            node_labels: Labels::stored(json(row, "node_labels")?),
            certificate: optional_id(row, "certificate_id")?,
            progress: IssuanceProgress {
                order_url: optional_text(row, "order_url")?,
                order_secret: optional_id(row, "order_secret_id")?,
                next_at: time(row, "next_at")?,
                failures: failures.map_err(|_| StoreError::Corrupt("failures"))?,
                error: issuance_error(row)?,
                window: window(row)?,
                window_ask_at: optional_time(row, "window_ask_at")?,
            },
            created_at: time(row, "created_at")?,
        };
        versioned(certificate, row)
    }
}

fn issuance_error(row: &AnyRow) -> Result<Option<IssuanceError>, StoreError> {
    let kind = optional_text(row, "error_kind")?;
    let message = optional_text(row, "error_message")?;
    let at = optional_time(row, "error_at")?;
    let found = kind.zip(message).zip(at);
    Ok(found.map(|((kind, message), at)| IssuanceError { kind, message, at }))
}

fn window(row: &AnyRow) -> Result<Option<(Timestamp, Timestamp)>, StoreError> {
    let start = optional_time(row, "window_start")?;
    Ok(start.zip(optional_time(row, "window_end")?))
}
