//! Members of organizations.

use crate::app::App;
use crate::app::audit_event::AuditEvent;
use crate::audit::value::{Audited, changed, deleted};
use crate::call::Call;
use crate::error::Error;
use control_domain::{Access, Refusal, Role, Tenant};
use control_store::{EndedCredential, ListFilter, Member, Page, Transaction, Versioned};
use control_wire::{OrgId, UserId};

impl App {
    /// The members of an organization.
    pub async fn members(
        &self,
        call: &Call,
        org: OrgId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Member>>, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        Ok(self.store.read().await?.members(org, filter, page).await?)
    }

    /// One member with its version.
    pub async fn member(
        &self,
        call: &Call,
        org: OrgId,
        user: UserId,
    ) -> Result<Versioned<Member>, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        find(&mut self.store.read().await?, org, user).await
    }

    /// Changes a member's role, effective at once for sessions and API keys. The member's
    /// invitations and enrolment tokens that the new role does not permit end.
    pub async fn change_role(
        &self,
        call: &Call,
        org: OrgId,
        user: UserId,
        role: Role,
    ) -> Result<Versioned<Member>, Error> {
        call.actor.require(Access::CONTROL, Tenant::org(org))?;
        let mut tx = self.store.begin().await?;
        let other_admin = tx.has_other_admin(org, user).await?;
        let Versioned { value, version } = find(&mut tx, org, user).await?;
        let membership = value.membership;
        let before = membership.audited();
        let membership = membership.change_role(&call.actor, role, other_admin)?;
        call.expect_version(version)?;
        let version = tx.update_membership(membership, version).await?;
        self.end_credentials(&mut tx, call, org, user, Some(role))
            .await?;
        let tenant = membership.tenant();
        tx.note_change(changed(&before, &membership));
        self.commit(tx, call, "member.role_changed", tenant, user.0)
            .await?;
        let value = Member {
            membership,
            ..value
        };
        Ok(Versioned { value, version })
    }

    /// Removes a member; the user keeps other memberships. API keys, invitations and enrolment
    /// tokens that the member created in this organization end. The identity provider cannot add
    /// the user again.
    pub async fn remove_member(&self, call: &Call, org: OrgId, user: UserId) -> Result<(), Error> {
        call.actor.require(Access::CONTROL, Tenant::org(org))?;
        let mut tx = self.store.begin().await?;
        let other_admin = tx.has_other_admin(org, user).await?;
        let Versioned { value, version } = find(&mut tx, org, user).await?;
        value.membership.check_remove(&call.actor, other_admin)?;
        call.expect_version(version)?;
        tx.delete_membership(org, user, version).await?;
        tx.note_removed_member(org, user, call.now).await?;
        self.end_credentials(&mut tx, call, org, user, None).await?;
        let tenant = value.membership.tenant();
        tx.note_change(deleted(&value.membership));
        self.commit(tx, call, "member.removed", tenant, user.0)
            .await
    }

    /// Ends credentials that the user created and may no longer create; writes an audit entry for
    /// each.
    pub(crate) async fn end_credentials(
        &self,
        tx: &mut Transaction,
        call: &Call,
        org: OrgId,
        user: UserId,
        role: Option<Role>,
    ) -> Result<(), Error> {
        let ended = tx.end_credentials(org, user, role, call.now).await?;
        self.record_ended(tx, call, ended).await
    }

    /// Writes an audit entry for each ended credential.
    pub(crate) async fn record_ended(
        &self,
        tx: &mut Transaction,
        call: &Call,
        credentials: Vec<EndedCredential>,
    ) -> Result<(), Error> {
        for ended in credentials {
            let EndedCredential {
                action,
                tenant,
                subject,
            } = ended;
            let event = AuditEvent {
                action,
                tenant: Some(tenant),
                subject,
            };
            self.record(tx, call, event).await?;
        }
        Ok(())
    }
}

async fn find(tx: &mut Transaction, org: OrgId, user: UserId) -> Result<Versioned<Member>, Error> {
    Ok(tx.member(org, user).await?.ok_or(Refusal::NotFound)?)
}
