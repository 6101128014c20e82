//! Enrolment tokens, by which nodes register.

use crate::app::{App, tenant};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::call::Call;
use crate::error::Error;
use crate::node::private_keys::require_labels;
use control_auth::Secret;
use control_domain::{
    Access, EnrolmentToken, EnrolmentTokenState, Labels, NewEnrolmentToken, Refusal,
};
use control_store::{ListFilter, Page, Transaction, Versioned};
use control_wire::{EnrolmentTokenId, ProjectId};
use jiff::Timestamp;

impl App {
    /// Creates a token; returns its secret, which is shown once.
    pub async fn create_enrolment_token(
        &self,
        call: &Call,
        project: ProjectId,
        new: NewEnrolmentToken,
    ) -> Result<(Versioned<EnrolmentToken>, Secret), Error> {
        let mut tx = self.store.begin().await?;
        let tenant = tenant(&mut tx, project).await?;
        let id = EnrolmentTokenId::new(call.now, self.random_id());
        let token = EnrolmentToken::create(&call.actor, tenant, id, new, call.now)?;
        let none = Labels::default();
        require_labels(&mut tx, &call.actor, tenant, &none, &token.labels).await?;
        // Serializes writers, so that two tokens cannot take the same name.
        tx.lock_audit().await?;
        check_name(&mut tx, &token, call.now).await?;
        let secret = self.new_secret();
        tx.insert_enrolment_token(&token, &secret.hash()).await?;
        tx.note_change(created(&token));
        self.commit(tx, call, "enrolment_token.created", tenant, id.0)
            .await?;
        Ok((Versioned::new(token), secret))
    }

    /// The tokens of a project.
    pub async fn enrolment_tokens(
        &self,
        call: &Call,
        project: ProjectId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<EnrolmentToken>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_NODES, tenant)?;
        Ok(tx.enrolment_tokens(project, filter, page).await?)
    }

    /// Revokes a token: no further node can register with it.
    pub async fn revoke_enrolment_token(
        &self,
        call: &Call,
        project: ProjectId,
        id: EnrolmentTokenId,
    ) -> Result<Versioned<EnrolmentToken>, Error> {
        let mut tx = self.store.begin().await?;
        let found = tx.enrolment_token(id).await?;
        let found = found.filter(|token| token.value.tenant.project == Some(project));
        let found = found.ok_or(Refusal::NotFound)?;
        let before = found.value.audited();
        let value = found.value.revoke(&call.actor, call.now)?;
        call.expect_version(found.version)?;
        let version = tx.update_enrolment_token(&value, found.version).await?;
        let tenant = value.tenant;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "enrolment_token.revoked", tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Renames a token.
    pub async fn rename_enrolment_token(
        &self,
        call: &Call,
        project: ProjectId,
        id: EnrolmentTokenId,
        name: &str,
    ) -> Result<Versioned<EnrolmentToken>, Error> {
        let mut tx = self.store.begin().await?;
        let found = tx.enrolment_token(id).await?;
        let found = found.filter(|token| token.value.tenant.project == Some(project));
        let found = found.ok_or(Refusal::NotFound)?;
        let before = found.value.audited();
        let value = found.value.rename(&call.actor, name)?;
        call.expect_version(found.version)?;
        tx.lock_audit().await?;
        check_name(&mut tx, &value, call.now).await?;
        let version = tx.update_enrolment_token(&value, found.version).await?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "enrolment_token.renamed", value.tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Deletes a token: no further node can register with it.
    pub async fn delete_enrolment_token(
        &self,
        call: &Call,
        project: ProjectId,
        id: EnrolmentTokenId,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let found = tx.enrolment_token(id).await?;
        let found = found.filter(|token| token.value.tenant.project == Some(project));
        let found = found.ok_or(Refusal::NotFound)?;
        found.value.check_delete(&call.actor)?;
        call.expect_version(found.version)?;
        tx.delete_enrolment_token(id, found.version).await?;
        let tenant = found.value.tenant;
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "enrolment_token.deleted", tenant, id.0)
            .await
    }
}

/// Refuses the name of another token of the project that has not ended.
async fn check_name(
    tx: &mut Transaction,
    token: &EnrolmentToken,
    now: Timestamp,
) -> Result<(), Error> {
    let is_ended = token.state(now) != EnrolmentTokenState::Active;
    if is_ended || !tx.is_enrolment_token_name_taken(token, now).await? {
        return Ok(());
    }
    Err(Refusal::Taken("name").into())
}
