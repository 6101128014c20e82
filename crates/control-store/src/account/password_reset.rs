//! Password resets: at most one per user.

use crate::error::StoreError;
use crate::row::{creator, id, time, written_rows};
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::PasswordReset;
use control_wire::UserId;
use jiff::Timestamp;
use uuid::Uuid;

impl Transaction {
    /// Stores a reset link; replaces an earlier one of the same user.
    pub async fn replace_password_reset(
        &mut self,
        reset: &PasswordReset,
        secret_hash: &str,
    ) -> Result<(), StoreError> {
        let PasswordReset {
            id,
            user,
            org,
            made_by,
            ends_at,
        } = *reset;
        self.delete_password_reset(user).await?;
        let insert =
            "INSERT INTO password_resets (id, user_id, org_id, secret_hash, made_by, ends_at)
                      VALUES ($1, $2, $3, $4, $5, $6)";
        let insert = sql(insert).bind(id).bind(user).bind(org);
        let insert = insert.bind(secret_hash);
        let insert = insert.bind(made_by.map(|creator| creator.user));
        insert.bind(ends_at).run(self).await?;
        Ok(())
    }

    /// The unused link with this hash of its secret.
    pub async fn password_reset(
        &mut self,
        secret_hash: &str,
    ) -> Result<Option<PasswordReset>, StoreError> {
        let by_secret = "SELECT id, user_id, org_id, made_by, ends_at,
                           (SELECT m.role FROM memberships m
                             WHERE m.org_id = password_resets.org_id
                               AND m.user_id = password_resets.made_by) AS maker_role,
                           CAST(NULL AS TEXT) AS maker_project_role
                         FROM password_resets WHERE secret_hash = $1";
        let row = sql(by_secret).bind(secret_hash).row(self).await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(PasswordReset {
            id: id(&row, "id")?,
            user: id(&row, "user_id")?,
            org: id(&row, "org_id")?,
            made_by: creator(&row)?,
            ends_at: time(&row, "ends_at")?,
        }))
    }

    /// Deletes the link, which is valid once.
    /// Uses up a link.
    /// # Errors
    ///
    /// [`StoreError::Stale`] if the link was used before.
    pub async fn spend_password_reset(&mut self, reset: Uuid) -> Result<(), StoreError> {
        let spend = sql("DELETE FROM password_resets WHERE id = $1");
        written_rows(spend.bind(reset).run(self).await?)
    }

    /// Deletes the user's link, if there is one.
    pub async fn delete_password_reset(&mut self, user: UserId) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM password_resets WHERE user_id = $1");
        delete.bind(user).run(self).await?;
        Ok(())
    }

    /// Deletes at most `limit` expired links; returns their number.
    pub async fn purge_password_resets(
        &mut self,
        now: Timestamp,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let delete = "DELETE FROM password_resets WHERE id IN
                      (SELECT id FROM password_resets WHERE ends_at <= $1
                       ORDER BY ends_at LIMIT $2)";
        sql(delete).bind(now).bind(limit).run(self).await
    }
}
