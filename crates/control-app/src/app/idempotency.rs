//! `Idempotency-Key`: stores the response of a request for its repetitions.

use crate::app::App;
use crate::error::Error;
use control_store::{Reply, Reservation};
use jiff::Timestamp;
use uuid::Uuid;

impl App {
    /// Reserves the key `name`, or returns its stored response. The returned identifier is passed
    /// to the command.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn reserve_reply(
        &self,
        name: &str,
        request_hash: &str,
        now: Timestamp,
    ) -> Result<(Uuid, Reservation), Error> {
        let id = Uuid::from_bytes(self.environment.random());
        let mut tx = self.store.begin().await?;
        let reservation = tx.reserve_reply(name, request_hash, id, now).await?;
        tx.commit().await?;
        Ok((id, reservation))
    }

    /// Returns true if the resource at `location`, named by a stored response, was deleted since.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn is_gone(&self, location: &str) -> Result<bool, Error> {
        Ok(self.store.read().await?.is_gone(location).await?)
    }

    /// Stores the response of an executed command; `None` releases the key.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn keep_reply(&self, id: Uuid, reply: Option<&Reply>) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        match reply {
            Some(reply) => tx.keep_reply(id, reply).await?,
            None => tx.release_reply(id).await?,
        }
        Ok(tx.commit().await?)
    }
}
