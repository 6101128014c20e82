//! Usage of an organization's quotas.

use crate::error::StoreError;
use crate::row::number;
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::QuotaKind;
use control_wire::OrgId;

impl Transaction {
    /// Number of objects of `kind` in the organization, by counting rows.
    pub async fn quota_used(&mut self, org: OrgId, kind: QuotaKind) -> Result<u64, StoreError> {
        let text = match kind {
            QuotaKind::Projects => "SELECT COUNT(*) AS used FROM projects WHERE org_id = $1",
            QuotaKind::Nodes => "SELECT COUNT(*) AS used FROM nodes WHERE org_id = $1",
            QuotaKind::ApiKeys => "SELECT COUNT(*) AS used FROM api_keys WHERE org_id = $1",
            QuotaKind::Bundles => "SELECT COUNT(*) AS used FROM bundles WHERE org_id = $1",
            QuotaKind::ArchiveBytes => {
                "SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) AS used
                 FROM bundles WHERE org_id = $1"
            }
            QuotaKind::Webhooks => "SELECT COUNT(*) AS used FROM webhooks WHERE org_id = $1",
        };
        let row = sql(text).bind(org).row(self).await?;
        let row = row.ok_or(StoreError::Corrupt("used"))?;
        u64::try_from(number(&row, "used")?).map_err(|_| StoreError::Corrupt("used"))
    }
}
