//! Quotas of organizations, enforced on creation.

use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_domain::{Access, QuotaKind, Quotas, Retention, Tenant};
use control_store::Transaction;
use control_wire::OrgId;

/// Limits of an organization and their current use; the installation sets the same limits for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrgLimits {
    /// Maximum number of items of each kind.
    pub quotas: Quotas,
    /// Number of existing items of each kind.
    pub used: Quotas,
    /// Retention of ended values.
    pub retention: Retention,
}

impl App {
    /// Limits of an organization, and their current use.
    ///
    /// # Errors
    ///
    /// [`Error`] if the actor may not read the organization, or the database fails.
    pub async fn org_limits(&self, call: &Call, org: OrgId) -> Result<OrgLimits, Error> {
        call.actor.require(Access::READ_ORG, Tenant::org(org))?;
        let mut tx = self.store.read().await?;
        Ok(OrgLimits {
            quotas: self.quotas,
            used: Quotas {
                projects: tx.quota_used(org, QuotaKind::Projects).await?,
                nodes: tx.quota_used(org, QuotaKind::Nodes).await?,
                api_keys: tx.quota_used(org, QuotaKind::ApiKeys).await?,
                bundles: tx.quota_used(org, QuotaKind::Bundles).await?,
                archive_bytes: tx.quota_used(org, QuotaKind::ArchiveBytes).await?,
                webhooks: tx.quota_used(org, QuotaKind::Webhooks).await?,
            },
            retention: self.retention,
        })
    }

    /// Checks the quota after a value was inserted in this transaction. Locks the audit log, so
    /// that two writers cannot take the last free item.
    ///
    /// # Errors
    ///
    /// [`Refusal::Quota`](control_domain::Refusal::Quota) if the organization exceeds its limit.
    pub(crate) async fn hold_quota(
        &self,
        tx: &mut Transaction,
        org: OrgId,
        kind: QuotaKind,
    ) -> Result<(), Error> {
        tx.lock_audit().await?;
        self.check_quota(tx, org, kind, 0).await
    }

    /// Checks that the organization has room for `added` items, before work that would be wasted
    /// otherwise.
    ///
    /// # Errors
    ///
    /// [`Refusal::Quota`](control_domain::Refusal::Quota) if the items would exceed the
    /// organization's limit.
    pub(crate) async fn check_quota(
        &self,
        tx: &mut Transaction,
        org: OrgId,
        kind: QuotaKind,
        added: u64,
    ) -> Result<(), Error> {
        let used = tx.quota_used(org, kind).await?;
        Ok(self.quotas.check(kind, used, added)?)
    }
}
