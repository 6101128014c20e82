//! Settings of an organization's single sign-on.

use crate::app::{App, taken};
use crate::audit::value::{Audited, changed, created, deleted, done};
use crate::call::Call;
use crate::error::Error;
use control_auth::Sealed;
use control_domain::{Access, Org, Refusal, SsoConnection, SsoSettings, Tenant};
use control_sso::saml::{SpKey, SpMetadata};
use control_store::{SsoSignIn, StoredSecret, Transaction, Versioned};
use control_wire::{OrgId, SecretId};
use serde_json::json;
use zeroize::Zeroizing;

const MAX_SECRET_BYTES: usize = 1_000;
const MAX_DOMAINS: usize = 100;

/// Single sign-on of an organization, as its administrators see it.
#[derive(Debug)]
pub struct SsoOverview {
    /// The connection to an identity provider; `None` while single sign-on is off.
    pub connection: Option<Versioned<SsoConnection>>,
    /// Domains in which the provider may create users; no restriction if the installation has one
    /// organization.
    pub domains: Vec<String>,
    /// Recent sign-ins, newest first: at most ten that the provider confirmed, and ten that it did
    /// not.
    pub sign_ins: Vec<SsoSignIn>,
}

impl App {
    /// Reads the organization's single sign-on.
    pub async fn sso(&self, call: &Call, org: OrgId) -> Result<SsoOverview, Error> {
        call.actor.require(Access::ADMINISTER, Tenant::org(org))?;
        let mut tx = self.store.read().await?;
        Ok(SsoOverview {
            connection: tx.sso_connection(org).await?,
            domains: tx.org_domains(org).await?,
            sign_ins: tx.sso_sign_ins(org).await?,
        })
    }

    /// The user's organizations with single sign-on.
    pub async fn orgs_with_sso(&self, call: &Call) -> Result<Vec<Org>, Error> {
        call.actor.holds(Access::Session)?;
        let mut tx = self.store.read().await?;
        let mut found = Vec::new();
        for id in call.actor.orgs() {
            if tx.sso_connection(id).await?.is_some()
                && let Some(org) = tx.org(id).await?
            {
                found.push(org.value);
            }
        }
        Ok(found)
    }

    /// Creates or replaces the connection. `client_secret` is for OpenID Connect; `None` keeps the
    /// stored secret, if the endpoint is unchanged. Sessions from a replaced provider end.
    pub async fn set_sso(
        &self,
        call: &Call,
        org: OrgId,
        settings: SsoSettings,
        client_secret: Option<Zeroizing<String>>,
    ) -> Result<Versioned<SsoConnection>, Error> {
        call.actor.require(Access::CONTROL, Tenant::org(org))?;
        self.check_site(org, &settings)?;
        let generated = match (&settings, &client_secret) {
            (SsoSettings::Saml(_), Some(_)) => {
                return Err(Refusal::invalid("client_secret", "is of OpenID Connect").into());
            }
            // Generated before the transaction, because it takes a moment; discarded if a key is
            // kept.
            (SsoSettings::Saml(_), None) => Some(self.heavy(org, SpKey::generate).await?),
            (SsoSettings::Oidc(_), _) => None,
        };
        let new_secret = match generated {
            Some(generated) => {
                let (_, pkcs8) = generated.map_err(|_| Error::Stopped)?;
                Some(pkcs8)
            }
            None => client_secret
                .map(|text| checked_secret(&text))
                .transpose()?,
        };
        let mut tx = self.store.begin().await?;
        match tx.sso_connection(org).await? {
            None => {
                call.expect_no_version()?;
                self.create_sso(tx, call, org, settings, new_secret).await
            }
            Some(found) => {
                call.expect_version(found.version)?;
                self.change_sso(tx, call, found, settings, new_secret).await
            }
        }
    }

    async fn create_sso(
        &self,
        mut tx: Transaction,
        call: &Call,
        org: OrgId,
        settings: SsoSettings,
        secret: Option<Zeroizing<Vec<u8>>>,
    ) -> Result<Versioned<SsoConnection>, Error> {
        let secret = secret.ok_or(Refusal::invalid("client_secret", "is needed"))?;
        let addresses = self.sso_site.private_addresses;
        let id = SecretId::new(call.now, self.random_id());
        let connection =
            SsoConnection::create(&call.actor, org, settings, id, addresses, call.now)?;
        self.insert_sso_secret(&mut tx, call, org, id, &secret)
            .await?;
        tx.insert_sso_connection(&connection).await?;
        tx.note_change(created(&connection));
        let tenant = connection.tenant();
        self.commit(tx, call, "sso.created", tenant, org.0).await?;
        Ok(Versioned::new(connection))
    }

    async fn change_sso(
        &self,
        mut tx: Transaction,
        call: &Call,
        found: Versioned<SsoConnection>,
        settings: SsoSettings,
        secret: Option<Zeroizing<Vec<u8>>>,
    ) -> Result<Versioned<SsoConnection>, Error> {
        let Versioned { value, version } = found;
        let (org, old) = (value.org, value.secret);
        let keeps = settings.keeps_secret_of(&value.settings);
        // The SAML key is published in metadata. It is kept, so that the identity provider needs no
        // update.
        let keeps_key = keeps && matches!(settings, SsoSettings::Saml(_));
        let replaced = match secret {
            Some(secret) if !keeps_key => Some(secret),
            _ if keeps => None,
            _ => {
                let reason = "is needed again for another issuer, client, endpoint or other scopes";
                return Err(Refusal::invalid("client_secret", reason).into());
            }
        };
        let id = match &replaced {
            Some(_) => SecretId::new(call.now, self.random_id()),
            None => old,
        };
        let before = value.audited();
        let is_same = settings.is_same_provider(&value.settings);
        let addresses = self.sso_site.private_addresses;
        let connection = value.change(&call.actor, settings, id, addresses)?;
        if let Some(secret) = &replaced {
            self.insert_sso_secret(&mut tx, call, org, id, secret)
                .await?;
        }
        let version = tx.update_sso_connection(&connection, version).await?;
        if replaced.is_some() {
            tx.delete_secret(old).await?;
        }
        if !is_same {
            tx.revoke_provider_sessions(org, call.now).await?;
        }
        tx.note_change(changed(&before, &connection));
        let tenant = connection.tenant();
        self.commit(tx, call, "sso.changed", tenant, org.0).await?;
        Ok(Versioned {
            value: connection,
            version,
        })
    }

    /// Switches single sign-on off, and ends sessions from the provider. Identities are kept for
    /// another connection to the same provider. On the command line, this restores access for
    /// administrators.
    pub async fn delete_sso(&self, call: &Call, org: OrgId) -> Result<(), Error> {
        let is_system = call.actor.holds(Access::System);
        is_system.or_else(|_| call.actor.require(Access::CONTROL, Tenant::org(org)))?;
        let mut tx = self.store.begin().await?;
        let found = tx.sso_connection(org).await?.ok_or(Refusal::NotFound)?;
        found.value.check_delete(&call.actor)?;
        call.expect_version(found.version)?;
        tx.delete_sso_connection(org, found.version).await?;
        tx.delete_secret(found.value.secret).await?;
        let ended = tx.revoke_provider_sessions(org, call.now).await?;
        tracing::info!(%org, ended, "single sign-on was switched off");
        tx.note_change(deleted(&found.value));
        self.commit(tx, call, "sso.deleted", Tenant::org(org), org.0)
            .await
    }

    /// The domains in which the organization's provider may create users, with the version of the
    /// organization.
    pub async fn org_domains(
        &self,
        call: &Call,
        org: OrgId,
    ) -> Result<Versioned<Vec<String>>, Error> {
        call.actor.holds(Access::InstanceAdmin)?;
        let mut tx = self.store.read().await?;
        let version = tx.org(org).await?.ok_or(Refusal::NotFound)?.version;
        let value = tx.org_domains(org).await?;
        Ok(Versioned { value, version })
    }

    /// Sets the domains in which the organization's provider may create users. They are a part of
    /// the organization, and change its version.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::Taken`] if another organization has one of them.
    pub async fn set_org_domains(
        &self,
        call: &Call,
        org: OrgId,
        domains: &[String],
    ) -> Result<Versioned<Vec<String>>, Error> {
        call.actor.holds(Access::FreshInstanceAdmin)?;
        let domains = checked_domains(domains)?;
        let mut tx = self.store.begin().await?;
        let found = tx.org(org).await?.ok_or(Refusal::NotFound)?;
        call.expect_version(found.version)?;
        let version = tx.update_org(&found.value, found.version).await?;
        let replaced = tx.replace_org_domains(org, &domains).await;
        replaced.map_err(taken("domains"))?;
        tx.note_change(done(&json!({"domains": domains})));
        self.commit(tx, call, "org.domains_changed", Tenant::org(org), org.0)
            .await?;
        Ok(Versioned {
            value: domains,
            version,
        })
    }

    /// The public SAML metadata of this service for an organization.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`] if the organization has no SAML connection.
    pub async fn sp_metadata(&self, org: OrgId) -> Result<String, Error> {
        let found = self.store.read().await?.sso_connection(org).await?;
        let found = found.ok_or(Refusal::NotFound)?.value;
        let SsoSettings::Saml(settings) = &found.settings else {
            return Err(Refusal::NotFound.into());
        };
        let pkcs8 = self.sso_secret(&found).await?;
        let certificate = SpKey::certificate(&pkcs8, "controld").map_err(|_| Error::Stopped)?;
        Ok(SpMetadata {
            entity_id: &settings.sp_entity_id,
            acs_url: &settings.assertion_consumer_service_url,
            certificate: &certificate,
            signs_requests: true,
        }
        .xml())
    }

    /// Opens the stored secret of a connection.
    pub(crate) async fn sso_secret(
        &self,
        connection: &SsoConnection,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        let id = connection.secret;
        let stored = self.store.read().await?.secret(id).await?;
        let stored = stored.ok_or(Refusal::NotFound)?;
        Ok(self.sealer.open(&id.to_string(), &stored.sealed)?)
    }

    async fn insert_sso_secret(
        &self,
        tx: &mut Transaction,
        call: &Call,
        org: OrgId,
        id: SecretId,
        secret: &[u8],
    ) -> Result<(), Error> {
        let sealed: Sealed =
            self.sealer
                .seal(&id.to_string(), self.environment.random(), secret)?;
        let stored = StoredSecret {
            id,
            org: Some(org),
            sealed,
            created_at: call.now,
        };
        Ok(tx.insert_secret(&stored).await?)
    }

    /// Checks that responses of the provider can reach this installation.
    fn check_site(&self, org: OrgId, settings: &SsoSettings) -> Result<(), Error> {
        match settings {
            SsoSettings::Oidc(_) if self.sso_site.public_url.is_none() => {
                let reason = "needs the installation's setting public-url";
                Err(Refusal::invalid("oidc", reason).into())
            }
            SsoSettings::Saml(settings)
                if !settings
                    .assertion_consumer_service_url
                    .ends_with(&acs_path(org)) =>
            {
                let (field, reason) = (
                    "assertion_consumer_service_url",
                    "does not end with /sso/ORG/saml/acs, with the organization's identifier",
                );
                Err(Refusal::invalid(field, reason).into())
            }
            SsoSettings::Oidc(_) | SsoSettings::Saml(_) => Ok(()),
        }
    }
}

/// Path of the assertion consumer service, to which browsers post SAML responses.
pub fn acs_path(org: OrgId) -> String {
    format!("/sso/{org}/saml/acs")
}

fn checked_secret(text: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
    if text.is_empty() || MAX_SECRET_BYTES < text.len() {
        return Err(Refusal::invalid("client_secret", "needs 1 to 1000 bytes").into());
    }
    Ok(Zeroizing::new(text.as_bytes().to_vec()))
}

/// Validates domains; returns them in lower case, sorted, without duplicates.
fn checked_domains(domains: &[String]) -> Result<Vec<String>, Error> {
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len()) && label.bytes().all(is_allowed)
    };
    let is_domain =
        |text: &String| text.len() <= 253 && text.contains('.') && text.split('.').all(is_label);
    if MAX_DOMAINS < domains.len() || !domains.iter().all(is_domain) {
        let reason = "needs at most 100 names such as example.com";
        return Err(Refusal::invalid("domains", reason).into());
    }
    let mut domains: Vec<String> = domains.iter().map(|text| text.to_lowercase()).collect();
    domains.sort();
    domains.dedup();
    Ok(domains)
}
