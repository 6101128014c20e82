//! Quotas of organizations, enforced on creation.

use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_domain::{Access, QuotaKind, Quotas, Retention, Tenant};
use control_store::Transaction;
use control_wire::OrgId;

/// The limits of an organization, which the installation sets for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrgLimits {
    /// Maximum number of items of each kind.
    pub quotas: Quotas,
    /// Items of each kind that exist now.
    pub used: Quotas,
    /// Retention of values that have ended.
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

    /// In a transaction that has inserted a value: whether the organization may have it. Serializes writers, so that
    /// two cannot take the last place.
    ///
    /// # Errors
    ///
    /// [`Refusal::Quota`](control_domain::Refusal::Quota) if the number is above the limit of the organization.
    pub(crate) async fn hold_quota(
        &self,
        tx: &mut Transaction,
        org: OrgId,
        kind: QuotaKind,
    ) -> Result<(), Error> {
        tx.lock_audit().await?;
        self.check_quota(tx, org, kind, 0).await
    }

    /// Checks that the organization may have `added` more, before work that would be refused at its end.
    ///
    /// # Errors
    ///
    /// [`Refusal::Quota`](control_domain::Refusal::Quota) if the number is above the limit of the organization.
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
