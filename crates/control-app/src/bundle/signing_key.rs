//! Signing keys of organizations.

use crate::app::App;
use crate::audit::value::{Audited, changed, created};
use crate::call::Call;
use crate::error::Error;
use control_auth::SigningPair;
use control_domain::{Access, Refusal, SigningKey, SigningKeyState, Tenant};
use control_store::{Page, StoredSecret, Transaction, Versioned};
use control_wire::{OrgId, SecretId, SigningKeyId, endorsed_text};
use jiff::Timestamp;

/// Deactivated keys that are published: as many as a node reads.
const ENDED_KEYS: i64 = 64;

impl App {
    /// Creates a key that is published, and signs after the next rotation.
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

    /// The keys of an organization.
    pub async fn signing_keys(
        &self,
        call: &Call,
        org: OrgId,
        page: Page,
    ) -> Result<Vec<Versioned<SigningKey>>, Error> {
        call.actor.require(Access::READ_ORG, Tenant::org(org))?;
        Ok(self.store.read().await?.signing_keys(org, page).await?)
    }

    /// The keys that verify the organization's signatures; they are public.
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

    /// The deactivated keys, with endorsements by which offline nodes find the verifying ones.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn ended_keys(&self, org: OrgId) -> Result<Vec<Versioned<SigningKey>>, Error> {
        let mut tx = self.store.read().await?;
        Ok(tx.ended_signing_keys(org, ENDED_KEYS).await?)
    }

    /// Activates the standby key for signing, or a new one without a standby key. The former key
    /// still verifies.
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

    /// Rejects signatures of the key from now on: tokens are exchanged again, orders signed again.
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

    /// The first key of an organization, active at once.
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

    /// The key that an organization signs with, opened.
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

    /// A new key endorsed by the active one: nodes that pin the active one may trust it.
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

    /// Stores bytes sealed; returns the identifier to open them with.
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
