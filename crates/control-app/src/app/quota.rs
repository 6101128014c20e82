//! Quotas of organizations, held where something is created.

use crate::app::App;
use crate::error::Error;
use control_domain::QuotaKind;
use control_store::Transaction;
use control_wire::OrgId;

impl App {
    /// In a transaction that has inserted a value: whether the organization may have it. Writers take turns from here on,
    /// so that no two of them have the last place.
    ///
    /// # Errors
    ///
    /// [`Refusal::Quota`](control_domain::Refusal::Quota)
    pub(crate) async fn hold_quota(
        &self,
        tx: &mut Transaction,
        org: OrgId,
        kind: QuotaKind,
    ) -> Result<(), Error> {
        tx.lock_audit().await?;
        self.check_quota(tx, org, (kind, 0)).await
    }

    /// Whether the organization may have `added` more at this moment: refuses early what would be refused after its work.
    ///
    /// # Errors
    ///
    /// [`Refusal::Quota`](control_domain::Refusal::Quota)
    pub(crate) async fn check_quota(
        &self,
        tx: &mut Transaction,
        org: OrgId,
        (kind, added): (QuotaKind, u64),
    ) -> Result<(), Error> {
        let used = tx.quota_used(org, kind).await?;
        Ok(self.quotas.check(kind, used, added)?)
    }
}
