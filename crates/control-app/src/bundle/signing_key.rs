//! Keys that sign an organization's bundles, orders and tokens.

use crate::app::App;
use crate::audit::value::{Audited, changed, created};
use crate::call::Call;
use crate::error::Error;
use control_auth::SigningPair;
use control_domain::{Access, Refusal, SigningKey, SigningKeyState, Tenant};
use control_store::{Page, StoredSecret, Transaction, Versioned};
use control_wire::{OrgId, SecretId, SigningKeyId, endorsed_text};
use jiff::Timestamp;

/// Maximum number of deactivated keys that are published: as many as a node reads.
const ENDED_KEYS: i64 = 64;

impl App {
    /// Creates a standby key: published at once, it signs after the next rotation.
    pub async fn create_signing_key(
        &self,
        call: &Call,
        org: OrgId,
    ) -> Result<Versioned<SigningKey>, Error> {
        let mut tx = self.store.begin().await?;
        let key = self.standby_key(&mut tx, call, org).await?;
        let tenant = Tenant::org(org);
        tx.note_change(created(&key));
        self.commit(tx, call, "signing_key.created", tenant, key.id.0)
            .await?;
        Ok(Versioned::new(key))
    }

    /// The signing keys of an organization, of every state.
    pub async fn signing_keys(
        &self,
        call: &Call,
        org: OrgId,
        page: Page,
    ) -> Result<Vec<Versioned<SigningKey>>, Error> {
        call.actor.require(Access::READ_ORG, Tenant::org(org))?;
        Ok(self.store.read().await?.signing_keys(org, page).await?)
    }

    /// The public keys that verify the organization's signatures.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`] if there is no such organization.
    pub async fn verifying_keys(&self, org: OrgId) -> Result<Vec<Versioned<SigningKey>>, Error> {
        let keys = self.store.read().await?.verifying_signing_keys(org).await?;
        if keys.is_empty() {
            return Err(Refusal::NotFound.into());
        }
        Ok(keys)
    }

    /// Deactivated keys with their endorsements, by which a node that was offline finds the current
    /// keys.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn ended_keys(&self, org: OrgId) -> Result<Vec<Versioned<SigningKey>>, Error> {
        let mut tx = self.store.read().await?;
        Ok(tx.ended_signing_keys(org, ENDED_KEYS).await?)
    }

    /// Makes the standby key active, or a new key if there is none. The previous key still
    /// verifies.
    pub async fn rotate_signing_key(
        &self,
        call: &Call,
        org: OrgId,
    ) -> Result<Versioned<SigningKey>, Error> {
        call.actor.require(Access::CONTROL, Tenant::org(org))?;
        let mut tx = self.store.begin().await?;
        let active = tx.active_signing_key(org).await?;
        let active = active.ok_or(Refusal::NotFound)?;
        let next = match tx.standby_signing_key(org).await? {
            Some(waiting) => waiting,
            None => Versioned::new(self.standby_key(&mut tx, call, org).await?),
        };
        let (value, retired) = SigningKey::rotate(&call.actor, next.value, active.value)?;
        // The database allows one active key at a time.
        tx.update_signing_key(&retired, active.version).await?;
        let version = tx.update_signing_key(&value, next.version).await?;
        let tenant = Tenant::org(org);
        tx.note_change(changed(&retired.audited(), &value));
        self.commit(tx, call, "signing_key.rotated", tenant, value.id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Deactivates a key: its signatures no longer verify. Nodes exchange their tokens again, and
    /// their orders are signed again.
    pub async fn deactivate_signing_key(
        &self,
        call: &Call,
        org: OrgId,
        id: SigningKeyId,
    ) -> Result<Versioned<SigningKey>, Error> {
        let mut tx = self.store.begin().await?;
        let found = tx.signing_key(id).await?;
        let found = found.filter(|key| key.value.org == org);
        let found = found.ok_or(Refusal::NotFound)?;
        let before = found.value.audited();
        let value = found.value.deactivate(&call.actor, call.now)?;
        call.expect_version(found.version)?;
        let version = tx.update_signing_key(&value, found.version).await?;
        let tenant = Tenant::org(org);
        tx.note_change(changed(&before, &value));
        self.commit(tx, call, "signing_key.deactivated", tenant, id.0)
            .await?;
        Ok(Versioned { value, version })
    }

    /// Creates the first key of an organization, active at once.
    pub(crate) async fn first_signing_key(
        &self,
        tx: &mut Transaction,
        org: OrgId,
        now: Timestamp,
    ) -> Result<(), Error> {
        let key = self.new_key(tx, org, now).await?;
        let key = SigningKey {
            state: SigningKeyState::Active,
            ..key
        };
        Ok(tx.insert_signing_key(&key).await?)
    }

    /// The active signing key of an organization, with its opened key pair.
    pub(crate) async fn signer(
        &self,
        tx: &mut Transaction,
        org: OrgId,
    ) -> Result<(SigningKey, SigningPair), Error> {
        let key = tx.active_signing_key(org).await?;
        let key = key.ok_or(Refusal::NoSigningKey)?.value;
        let stored = tx.secret(key.secret).await?.ok_or(Refusal::NotFound)?;
        let place = key.secret.to_string();
        let seed = self.sealer.open(&place, &stored.sealed)?;
        let pair = SigningPair::new(&seed)?;
        Ok((key, pair))
    }

    /// Creates a standby key endorsed by the active key, so that nodes that trust the active key
    /// accept it.
    async fn standby_key(
        &self,
        tx: &mut Transaction,
        call: &Call,
        org: OrgId,
    ) -> Result<SigningKey, Error> {
        let verifying = tx.verifying_signing_keys(org).await?;
        SigningKey::check_create(&call.actor, org, verifying.len())?;
        let (signer, pair) = self.signer(tx, org).await?;
        let mut key = self.new_key(tx, org, call.now).await?;
        let text = endorsed_text(org, key.id, key.public_key.as_str());
        key.endorsement = Some((signer.id, pair.sign(text.as_bytes())));
        tx.insert_signing_key(&key).await?;
        Ok(key)
    }

    async fn new_key(
        &self,
        tx: &mut Transaction,
        org: OrgId,
        now: Timestamp,
    ) -> Result<SigningKey, Error> {
        let seed: [u8; 32] = self.environment.random();
        let secret = self.seal(tx, Some(org), &seed, now).await?;
        Ok(SigningKey {
            id: SigningKeyId::new(now, self.random_id()),
            org,
            state: SigningKeyState::Standby,
            public_key: SigningPair::new(&seed)?.public(),
            secret,
            endorsement: None,
            created_at: now,
            deactivated_at: None,
        })
    }

    /// Seals bytes and stores them as a secret; returns the identifier of the secret.
    pub(crate) async fn seal(
        &self,
        tx: &mut Transaction,
        org: Option<OrgId>,
        bytes: &[u8],
        now: Timestamp,
    ) -> Result<SecretId, Error> {
        let id = SecretId::new(now, self.random_id());
        let nonce = self.environment.random();
        let secret = StoredSecret {
            id,
            org,
            sealed: self.sealer.seal(&id.to_string(), nonce, bytes)?,
            created_at: now,
        };
        tx.insert_secret(&secret).await?;
        Ok(id)
    }
}
