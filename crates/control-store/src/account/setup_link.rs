//! Set-up links: at most one at a time, and none once there is a user.

use crate::error::StoreError;
use crate::row::{id, time, written};
use crate::statement::Write;
use crate::store::Transaction;
use control_domain::SetupLink;
use sqlx::query;
use uuid::Uuid;

impl Transaction {
    /// Stores `link`; replaces all earlier ones.
    pub async fn replace_setup_link(
        &mut self,
        link: SetupLink,
        secret_hash: &str,
    ) -> Result<(), StoreError> {
        self.delete_setup_links().await?;
        query("INSERT INTO setup_links (id, secret_hash, created_at) VALUES ($1, $2, $3)")
            .bind(link.id.to_string())
            .bind(secret_hash)
            .bind(link.created_at.as_millisecond())
            .write_in(self)
            .await?;
        Ok(())
    }

    /// Deletes all links, once a user exists.
    pub async fn delete_setup_links(&mut self) -> Result<(), StoreError> {
        query("DELETE FROM setup_links").write_in(self).await?;
        Ok(())
    }

    /// The unused link with this hash of its secret.
    pub async fn setup_link_by_secret(
        &mut self,
        secret_hash: &str,
    ) -> Result<Option<SetupLink>, StoreError> {
        let row = query("SELECT id, created_at FROM setup_links WHERE secret_hash = $1")
            .bind(secret_hash)
            .fetch_optional(self.connection())
            .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(SetupLink {
            id: id(&row, "id")?,
            created_at: time(&row, "created_at")?,
        }))
    }

    /// Uses up a link.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if the link was used before.
    pub async fn spend_setup_link(&mut self, link: Uuid) -> Result<(), StoreError> {
        let done = query("DELETE FROM setup_links WHERE id = $1")
            .bind(link.to_string())
            .write_in(self)
            .await?;
        written(&done)
    }
}
