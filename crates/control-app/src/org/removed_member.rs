//! Members removed by an administrator: an identity provider cannot add them again.

use crate::app::App;
use crate::app::audit_event::AuditEvent;
use crate::audit::value::done;
use crate::call::Call;
use crate::error::Error;
use control_domain::{Access, Refusal, Tenant};
use control_store::{ListFilter, Page, RemovedMember, Transaction};
use control_wire::{OrgId, UserId};
use serde_json::json;

const READMITTED: &str = "member.readmitted";

impl App {
    /// Users that administrators removed from the organization and have not readmitted.
    pub async fn removed_members(
        &self,
        call: &Call,
        org: OrgId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<RemovedMember>, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        let mut tx = self.store.read().await?;
        Ok(tx.removed_members(org, filter, page).await?)
    }

    /// Permits the organization's identity provider to add a removed user again.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::NotFound`] if the user is not a removed member.
    pub async fn readmit_member(&self, call: &Call, org: OrgId, user: UserId) -> Result<(), Error> {
        let tenant = Tenant::org(org);
        call.actor.require(Access::CONTROL, tenant)?;
        let mut tx = self.store.begin().await?;
        if !tx.readmit_member(org, user).await? {
            return Err(Refusal::NotFound.into());
        }
        tx.note_change(done(&json!({"by": "list"})));
        self.commit(tx, call, READMITTED, tenant, user.0).await
    }

    /// Readmits the removed member with the address of an invitation, if there is one.
    pub(crate) async fn readmit_invited(
        &self,
        tx: &mut Transaction,
        call: &Call,
        org: OrgId,
        user: UserId,
    ) -> Result<(), Error> {
        if !tx.readmit_member(org, user).await? {
            return Ok(());
        }
        tx.note_change(done(&json!({"by": "invitation"})));
        let event = AuditEvent {
            action: READMITTED,
            tenant: Some(Tenant::org(org)),
            subject: user.0,
        };
        self.record(tx, call, event).await?;
        Ok(())
    }
}
