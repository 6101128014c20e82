//! Rotation of the master keys, which seal all secrets.

use crate::account::second_factor::totp_place;
use crate::app::App;
use crate::error::Error;
use control_auth::Sealer;
use control_store::{StoreError, StoredSecret, Transaction};
use std::collections::BTreeSet;

/// Maximum number of secrets per transaction.
const SECRETS_PER_TRANSACTION: i64 = 100;

impl App {
    /// Replaces the master keys in memory.
    pub fn replace_master_keys(&self, sealer: Sealer) {
        self.sealer.replace(sealer);
    }

    /// Reseals a chunk of secrets with the current master key; returns their number, 0 when all are
    /// done. Commits in each call, so that a crash loses no work.
    ///
    /// # Errors
    ///
    /// [`Error::Seal`] if a secret cannot be opened, [`Error::Store`] if the database fails.
    pub async fn reseal_secrets(&self) -> Result<usize, Error> {
        let mut tx = self.store.begin().await?;
        let current = self.sealer.current();
        let secrets = tx
            .secrets_not_sealed_with(&current, SECRETS_PER_TRANSACTION)
            .await?;
        for StoredSecret { id, sealed, .. } in &secrets {
            let place = id.to_string();
            let bytes = self.sealer.open(&place, sealed)?;
            let sealed = self
                .sealer
                .seal(&place, self.environment.random(), &bytes)?;
            match tx.reseal_secret(*id, &sealed).await {
                // Deleted concurrently.
                Err(StoreError::Stale) => {}
                done => done?,
            }
        }
        let resealed = secrets.len() + self.reseal_totp(&mut tx, &current).await?;
        tx.commit().await?;
        Ok(resealed)
    }

    async fn reseal_totp(&self, tx: &mut Transaction, current: &str) -> Result<usize, Error> {
        let secrets = tx
            .totp_not_sealed_with(current, SECRETS_PER_TRANSACTION)
            .await?;
        for (user, before) in &secrets {
            let place = totp_place(*user);
            let bytes = self.sealer.open(&place, before)?;
            let nonce = self.environment.random();
            let sealed = self.sealer.seal(&place, nonce, &bytes)?;
            match tx.reseal_totp(*user, before, &sealed).await {
                // Removed concurrently.
                Err(StoreError::Stale) => {}
                done => done?,
            }
        }
        Ok(secrets.len())
    }

    /// Names of the master keys that at least one secret is sealed with.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn master_keys_in_use(&self) -> Result<BTreeSet<String>, Error> {
        Ok(self.store.read().await?.master_keys_in_use().await?)
    }
}
