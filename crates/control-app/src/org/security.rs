//! Security requirements for members of an organization.

use crate::app::App;
use crate::audit::value::{Audited, changed};
use crate::call::Call;
use crate::error::Error;
use control_domain::{Access, OrgSecurity, Refusal, Tenant};
use control_store::{Transaction, Versioned};
use control_wire::OrgId;

impl App {
    /// The security requirements for members.
    pub async fn org_security(
        &self,
        call: &Call,
        org: OrgId,
    ) -> Result<Versioned<OrgSecurity>, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        find(&mut self.store.read().await?, org).await
    }

    /// Changes the organization's security requirements, effective at once for open sessions.
    pub async fn set_org_security(
        &self,
        call: &Call,
        org: OrgId,
        security: OrgSecurity,
    ) -> Result<Versioned<OrgSecurity>, Error> {
        call.actor.require(Access::CONTROL, Tenant::org(org))?;
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, org).await?;
        call.expect_version(found.version)?;
        let version = tx.update_org_security(org, security, found.version).await?;
        tx.note_change(changed(&found.value.audited(), &security));
        let tenant = Tenant::org(org);
        self.commit(tx, call, "org.security_changed", tenant, org.0)
            .await?;
        Ok(Versioned {
            value: security,
            version,
        })
    }
}

async fn find(tx: &mut Transaction, org: OrgId) -> Result<Versioned<OrgSecurity>, Error> {
    Ok(tx.org_security(org).await?.ok_or(Refusal::NotFound)?)
}
