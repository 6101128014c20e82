//! Signing keys of organizations.

use crate::app::App;
use crate::error::Error;
use control_auth::SigningPair;
use control_domain::{Org, SigningKey, SigningKeyState};
use control_store::{StoredSecret, Transaction};
use control_wire::{OrgId, SecretId, SigningKeyId};
use jiff::Timestamp;

impl App {
    /// Makes an active key with a sealed private half.
    pub(crate) async fn create_signing_key(
        &self,
        tx: &mut Transaction,
        org: &Org,
        now: Timestamp,
    ) -> Result<SigningKey, Error> {
        let seed: [u8; 32] = self.environment.random();
        let secret = self.seal(tx, Some(org.id), &seed, now).await?;
        let key = SigningKey {
            id: SigningKeyId::new(now, self.random_id()),
            org: org.id,
            state: SigningKeyState::Active,
            public_key: SigningPair::new(&seed)?.public(),
            secret,
            created_at: now,
        };
        tx.insert_signing_key(&key).await?;
        Ok(key)
    }

    /// Stores bytes sealed; gives the name under which they are opened again.
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
