//! Connections to identity providers, and the domains of organizations.

use crate::error::StoreError;
use crate::row::{id, json, optional_json, optional_time, text, time, versioned, written_rows};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::Versioned;
use control_domain::SsoConnection;
use control_wire::OrgId;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;

impl Transaction {
    /// Inserts a connection.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the organization has a connection.
    pub async fn insert_sso_connection(
        &mut self,
        connection: &SsoConnection,
    ) -> Result<(), StoreError> {
        let SsoConnection {
            org,
            settings,
            secret,
            created_at,
        } = connection;
        let insert =
            "INSERT INTO sso_connections (org_id, settings, secret_id, created_at, version)
                      VALUES ($1, $2, $3, $4, 1)";
        let insert = sql(insert).bind(*org).bind(to_json(settings, "settings")?);
        insert.bind(*secret).bind(*created_at).run(self).await?;
        Ok(())
    }

    /// The organization's connection, if any.
    pub async fn sso_connection(
        &mut self,
        org: OrgId,
    ) -> Result<Option<Versioned<SsoConnection>>, StoreError> {
        let by_org = "SELECT org_id, settings, secret_id, created_at, version FROM sso_connections
                      WHERE org_id = $1";
        sql(by_org).bind(org).one(self).await
    }

    /// Updates the connection and deletes its metadata if `version` is stored; returns the next
    /// version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn update_sso_connection(
        &mut self,
        connection: &SsoConnection,
        version: i64,
    ) -> Result<i64, StoreError> {
        let SsoConnection {
            org,
            settings,
            secret,
            created_at: _,
        } = connection;
        let update = "UPDATE sso_connections SET settings = $1, secret_id = $2, metadata = NULL,
                        metadata_at = NULL, version = version + 1
                      WHERE org_id = $3 AND version = $4";
        let update = sql(update).bind(to_json(settings, "settings")?);
        update.bind(*secret).bind(*org).write(self, version).await
    }

    /// Deletes the connection if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn delete_sso_connection(
        &mut self,
        org: OrgId,
        version: i64,
    ) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM sso_connections WHERE org_id = $1 AND version = $2");
        delete.bind(org).write(self, version).await?;
        Ok(())
    }

    /// The last metadata of the identity provider, with the time when it was read.
    pub async fn idp_metadata<T: DeserializeOwned>(
        &mut self,
        org: OrgId,
    ) -> Result<Option<(T, Timestamp)>, StoreError> {
        let by_org = sql("SELECT metadata, metadata_at FROM sso_connections WHERE org_id = $1");
        let Some(row) = by_org.bind(org).row(self).await? else {
            return Ok(None);
        };
        let metadata = optional_json(&row, "metadata")?;
        Ok(metadata.zip(optional_time(&row, "metadata_at")?))
    }

    /// Stores metadata for this version of the connection; does nothing if the connection has
    /// changed.
    pub async fn set_idp_metadata(
        &mut self,
        org: OrgId,
        version: i64,
        metadata: &impl Serialize,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let update = "UPDATE sso_connections SET metadata = $1, metadata_at = $2
                      WHERE org_id = $3 AND version = $4";
        let update = sql(update).bind(to_json(metadata, "metadata")?).bind(now);
        update.bind(org).bind(version).run(self).await?;
        Ok(())
    }

    /// Stores the first metadata for this version of the connection; returns false if there is
    /// metadata already, or the connection has changed.
    pub async fn set_first_idp_metadata(
        &mut self,
        org: OrgId,
        version: i64,
        metadata: &impl Serialize,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE sso_connections SET metadata = $1, metadata_at = $2
                      WHERE org_id = $3 AND version = $4 AND metadata IS NULL";
        let update = sql(update).bind(to_json(metadata, "metadata")?).bind(now);
        let updated = update.bind(org).bind(version).run(self).await?;
        Ok(0 < updated)
    }

    /// The domains of an organization, in alphabetical order.
    pub async fn org_domains(&mut self, org: OrgId) -> Result<Vec<String>, StoreError> {
        let list = sql("SELECT domain FROM org_domains WHERE org_id = $1 ORDER BY domain");
        let rows = list.bind(org).rows(self).await?;
        rows.iter().map(|row| text(row, "domain")).collect()
    }

    /// Replaces the organization's domains.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if another organization has one of them.
    pub async fn replace_org_domains(
        &mut self,
        org: OrgId,
        domains: &[String],
    ) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM org_domains WHERE org_id = $1");
        delete.bind(org).run(self).await?;
        for domain in domains {
            let insert = sql("INSERT INTO org_domains (domain, org_id) VALUES ($1, $2)");
            written_rows(insert.bind(domain.clone()).bind(org).run(self).await?)?;
        }
        Ok(())
    }

    /// Returns true if the installation has no other organization.
    pub async fn is_only_org(&mut self, org: OrgId) -> Result<bool, StoreError> {
        let other = sql("SELECT id FROM orgs WHERE id <> $1 LIMIT 1");
        Ok(other.bind(org).row(self).await?.is_none())
    }

    /// Ends the sessions from the organization's identity provider.
    pub async fn revoke_provider_sessions(
        &mut self,
        org: OrgId,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        for begun in [
            "DELETE FROM sign_in_attempts WHERE org_id = $1",
            "DELETE FROM sign_in_tickets WHERE org_id = $1",
        ] {
            sql(begun).bind(org).run(self).await?;
        }
        let revoke = "UPDATE sessions SET revoked_at = $1
                      WHERE provider_org_id = $2 AND revoked_at IS NULL";
        sql(revoke).bind(now).bind(org).run(self).await
    }
}

pub(crate) fn to_json(value: &impl Serialize, column: &'static str) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|_| StoreError::Corrupt(column))
}

impl Record for SsoConnection {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let connection = Self {
            org: id(row, "org_id")?,
            settings: json(row, "settings")?,
            secret: id(row, "secret_id")?,
            created_at: time(row, "created_at")?,
        };
        versioned(connection, row)
    }
}
