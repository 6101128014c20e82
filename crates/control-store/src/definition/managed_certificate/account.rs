//! Accounts of organizations at certificate authorities.

use crate::error::StoreError;
use crate::row::id;
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::ManagedCertificate;
use control_wire::{OrgId, SecretId};
use jiff::Timestamp;

impl Transaction {
    /// The sealed credentials of the account of a managed certificate's organization, if it has one.
    pub async fn acme_account(
        &mut self,
        value: &ManagedCertificate,
    ) -> Result<Option<SecretId>, StoreError> {
        let found = sql(
            "SELECT secret_id FROM acme_accounts WHERE org_id = $1 AND directory = $2 AND email = $3",
        );
        let found = found.bind(value.tenant.org).bind(value.directory.as_str());
        let row = found.bind(value.email.as_str()).row(self).await?;
        row.map(|row| id(&row, "secret_id")).transpose()
    }

    /// Stores the sealed credentials of a new account.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if another replica stored an account first.
    pub async fn insert_acme_account(
        &mut self,
        value: &ManagedCertificate,
        secret: SecretId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let insert = "INSERT INTO acme_accounts (org_id, directory, email, secret_id, created_at)
                      VALUES ($1, $2, $3, $4, $5)";
        let insert = sql(insert).bind(value.tenant.org);
        let insert = insert.bind(value.directory.as_str());
        let insert = insert.bind(value.email.as_str()).bind(secret).bind(now);
        insert.run(self).await?;
        Ok(())
    }

    /// Deletes an account that the authority no longer knows.
    pub async fn delete_acme_account(
        &mut self,
        org: OrgId,
        secret: SecretId,
    ) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM acme_accounts WHERE org_id = $1 AND secret_id = $2");
        delete.bind(org).bind(secret).run(self).await?;
        let delete = sql("DELETE FROM secrets WHERE id = $1");
        delete.bind(secret).run(self).await?;
        Ok(())
    }
}
