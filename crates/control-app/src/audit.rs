//! The audit log of an organization.

mod archive;
pub(crate) mod record;
pub(crate) mod value;

use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_domain::{Access, Tenant};
use control_store::{AuditFilter, AuditPage, AuditRecord};
use control_wire::OrgId;
use std::sync::Arc;

/// Maximum number of entries read at once.
const PAGE_ENTRIES: i64 = 500;

/// A running export: the organization's entries up to the newest one at its start, oldest first.
#[derive(Debug)]
pub struct AuditExport {
    app: Arc<App>,
    org: OrgId,
    filter: AuditFilter,
    after: Option<i64>,
    newest: i64,
}

impl App {
    /// A page of the organization's entries before number `before`, newest first.
    pub async fn audit_log(
        &self,
        call: &Call,
        org: OrgId,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: i64,
    ) -> Result<AuditPage, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        let mut tx = self.store.read().await?;
        let before = before.unwrap_or(i64::MAX);
        Ok(tx.audit_before(org, filter, before, limit).await?)
    }

    /// Starts an export.
    pub async fn export_audit(
        self: Arc<Self>,
        call: &Call,
        org: OrgId,
        filter: AuditFilter,
    ) -> Result<AuditExport, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        let newest = self.store.read().await?.audit_newest(org).await?;
        Ok(AuditExport {
            app: self,
            org,
            filter,
            after: Some(0),
            newest,
        })
    }
}

impl AuditExport {
    /// The next chunk of entries; `None` after the last. Holds no connection between calls.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn next(&mut self) -> Result<Option<Vec<AuditRecord>>, Error> {
        let Some(after) = self.after else {
            return Ok(None);
        };
        let mut tx = self.app.store.read().await?;
        let page = tx
            .audit_since(self.org, &self.filter, after, PAGE_ENTRIES)
            .await?;
        let AuditPage { mut records, next } = page;
        self.after = next.filter(|seq| *seq < self.newest);
        records.retain(|record| record.seq <= self.newest);
        Ok(Some(records))
    }
}
