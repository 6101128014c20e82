//! API keys.

use crate::app::{App, tenant};
use crate::audit::value::{Audited, changed, created, deleted};
use crate::call::Call;
use crate::error::Error;
use control_auth::Secret;
use control_domain::{Access, ApiKey, ApiKeyState, NewApiKey, QuotaKind, Refusal, Tenant};
use control_store::{ListFilter, Page, Transaction, Versioned};
use control_wire::{ApiKeyId, OrgId, ProjectId};
use jiff::Timestamp;

/// Scope of API keys in a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApiKeyTenant {
    /// The organization; if absent, the project's, or the only one visible to the actor.
    pub org: Option<OrgId>,
    /// The project; if absent, the only one visible to the actor, or the whole organization.
    pub project: Option<ProjectId>,
}

impl App {
    /// Creates a key; returns its secret, which is shown once.
    pub async fn create_api_key(
        &self,
        call: &Call,
        place: ApiKeyTenant,
        new: NewApiKey,
    ) -> Result<(Versioned<ApiKey>, Secret), Error> {
        let mut tx = self.store.begin().await?;
        let tenant = resolve(&mut tx, call, place).await?;
        let id = ApiKeyId::new(call.now, self.random_id());
        let key = ApiKey::create(&call.actor, tenant, id, new, call.now)?;
        // Serializes writers, so that two keys cannot take the same name.
        tx.lock_audit().await?;
        check_name(&mut tx, &key, call.now).await?;
        let secret = self.new_secret();
        tx.insert_api_key(&key, &secret.hash()).await?;
        self.hold_quota(&mut tx, tenant.org, QuotaKind::ApiKeys)
            .await?;
        tx.note_change(created(&key));
        self.commit(tx, call, "api_key.created", tenant, id.0)
            .await?;
        Ok((Versioned::new(key), secret))
    }

    /// The API keys of an organization; with a project, only the keys limited to it.
    pub async fn api_keys(
        &self,
        call: &Call,
        place: ApiKeyTenant,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<ApiKey>>, Error> {
        let mut tx = self.store.read().await?;
        let tenant = resolve(&mut tx, call, place).await?;
        call.actor.require(Access::READ_API_KEYS, tenant)?;
        Ok(tx
            .api_keys(tenant.org, tenant.project, filter, page)
            .await?)
    }

    /// One API key with its version; the actor needs the permission to read keys of its tenant.
    pub async fn api_key(&self, call: &Call, id: ApiKeyId) -> Result<Versioned<ApiKey>, Error> {
        let found = find(&mut self.store.read().await?, id).await?;
        call.actor
            .require(Access::READ_API_KEYS, found.value.tenant)?;
        Ok(found)
    }

    /// Revokes a key; it is refused from then on.
    pub async fn revoke_api_key(
        &self,
        call: &Call,
        id: ApiKeyId,
    ) -> Result<Versioned<ApiKey>, Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, id).await?;
        let before = found.value.audited();
        let value = found.value.revoke(&call.actor, call.now)?;
        call.expect_version(found.version)?;
        let version = tx.update_api_key(&value, found.version).await?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "api_key.revoked", value.tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Renames a key.
    pub async fn rename_api_key(
        &self,
        call: &Call,
        id: ApiKeyId,
        name: &str,
    ) -> Result<Versioned<ApiKey>, Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, id).await?;
        let before = found.value.audited();
        let value = found.value.rename(&call.actor, name)?;
        call.expect_version(found.version)?;
        tx.lock_audit().await?;
        check_name(&mut tx, &value, call.now).await?;
        let version = tx.update_api_key(&value, found.version).await?;
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "api_key.renamed", value.tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Deletes a key that was revoked or has expired.
    pub async fn delete_api_key(&self, call: &Call, id: ApiKeyId) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let found = find(&mut tx, id).await?;
        found.value.check_delete(&call.actor, call.now)?;
        call.expect_version(found.version)?;
        tx.delete_api_key(id, found.version).await?;
        let tenant = found.value.tenant;
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "api_key.deleted", tenant, id.0).await
    }
}

async fn find(tx: &mut Transaction, id: ApiKeyId) -> Result<Versioned<ApiKey>, Error> {
    Ok(tx.api_key(id).await?.ok_or(Refusal::NotFound)?)
}

/// Refuses the name of another active key of the same organization or project.
async fn check_name(tx: &mut Transaction, key: &ApiKey, now: Timestamp) -> Result<(), Error> {
    let is_ended = key.state(now) != ApiKeyState::Active;
    if is_ended || !tx.is_api_key_name_taken(key, now).await? {
        return Ok(());
    }
    Err(Refusal::Taken("name").into())
}

/// A project of another organization is reported as not found.
async fn resolve(tx: &mut Transaction, call: &Call, place: ApiKeyTenant) -> Result<Tenant, Error> {
    let ApiKeyTenant { org, project } = place;
    let project = project.or(call.actor.only_project());
    if let Some(project) = project {
        let found = tenant(tx, project).await?;
        call.actor.require(Access::READ_API_KEYS, found)?;
        if org.is_some_and(|org| org != found.org) {
            return Err(Refusal::invalid("project", "belongs to another organization").into());
        }
        return Ok(found);
    }
    let org = match (org, call.actor.orgs().as_slice()) {
        (Some(org), _) => org,
        (None, [only]) => *only,
        (None, _) => {
            return Err(Refusal::invalid("org", "is needed: there are several").into());
        }
    };
    Ok(Tenant::org(org))
}
