//! Sign-ins that wait for a second factor, and known browsers.

use crate::error::StoreError;
use crate::row::{address, id, text, time, written_rows};
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::{KnownBrowser, PendingSignIn, SessionOrigin, SignInMethod};
use control_wire::UserId;
use jiff::Timestamp;
use uuid::Uuid;

/// Maximum number of known browsers per user; the one with the oldest last sign-in is dropped.
const MAX_BROWSERS: i64 = 20;

impl Transaction {
    /// Inserts a pending sign-in under the hash of its secret.
    pub async fn insert_pending_sign_in(
        &mut self,
        pending: &PendingSignIn,
        secret_hash: &str,
    ) -> Result<(), StoreError> {
        let PendingSignIn {
            id,
            user,
            origin,
            ends_at,
        } = pending;
        let insert = "INSERT INTO pending_sign_ins (id, user_id, secret_hash, address, browser,
                      ends_at) VALUES ($1, $2, $3, $4, $5, $6)";
        let insert = sql(insert).bind(*id).bind(*user).bind(secret_hash);
        let insert = insert.bind(origin.address.map(|address| address.to_string()));
        let insert = insert.bind(origin.browser.as_str()).bind(*ends_at);
        insert.run(self).await?;
        Ok(())
    }

    /// The pending sign-in with this hash of its secret.
    pub async fn pending_sign_in(
        &mut self,
        secret_hash: &str,
    ) -> Result<Option<PendingSignIn>, StoreError> {
        let by_secret = "SELECT id, user_id, address, browser, ends_at FROM pending_sign_ins
                         WHERE secret_hash = $1";
        let row = sql(by_secret).bind(secret_hash).row(self).await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(PendingSignIn {
            id: id(&row, "id")?,
            user: id(&row, "user_id")?,
            origin: SessionOrigin {
                method: SignInMethod::Password,
                provider: None,
                address: address(&row, "address")?,
                browser: text(&row, "browser")?,
            },
            ends_at: time(&row, "ends_at")?,
        }))
    }

    /// Uses up a pending sign-in.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if the sign-in was used before.
    pub async fn spend_pending_sign_in(&mut self, pending: Uuid) -> Result<(), StoreError> {
        let spend = sql("DELETE FROM pending_sign_ins WHERE id = $1");
        written_rows(spend.bind(pending).run(self).await?)
    }

    /// Deletes at most `limit` expired pending sign-ins; returns their number.
    pub async fn purge_pending_sign_ins(
        &mut self,
        now: Timestamp,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let delete = "DELETE FROM pending_sign_ins WHERE id IN
                      (SELECT id FROM pending_sign_ins WHERE ends_at <= $1
                       ORDER BY ends_at LIMIT $2)";
        sql(delete).bind(now).bind(limit).run(self).await
    }

    /// The known browser with this hash of its secret.
    pub async fn known_browser(
        &mut self,
        secret_hash: &str,
    ) -> Result<Option<KnownBrowser>, StoreError> {
        let by_secret = sql("SELECT user_id, seen_at FROM known_browsers WHERE secret_hash = $1");
        let row = by_secret.bind(secret_hash).row(self).await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(KnownBrowser {
            user: id(&row, "user_id")?,
            seen_at: time(&row, "seen_at")?,
        }))
    }

    /// Records a sign-in of the browser with this hash of its secret. Of more than 20 browsers of a
    /// user, the oldest are deleted.
    pub async fn note_browser(
        &mut self,
        secret_hash: &str,
        user: UserId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let note = "INSERT INTO known_browsers (secret_hash, user_id, seen_at) VALUES ($1, $2, $3)
                    ON CONFLICT (secret_hash) DO UPDATE SET user_id = $2, seen_at = $3";
        let note = sql(note).bind(secret_hash).bind(user).bind(now);
        note.run(self).await?;
        let forget = "DELETE FROM known_browsers WHERE user_id = $1 AND secret_hash NOT IN
                      (SELECT secret_hash FROM known_browsers WHERE user_id = $1
                       ORDER BY seen_at DESC, secret_hash LIMIT $2)";
        sql(forget).bind(user).bind(MAX_BROWSERS).run(self).await?;
        Ok(())
    }

    /// Deletes the user's known browsers.
    pub async fn forget_browsers(&mut self, user: UserId) -> Result<(), StoreError> {
        let forget = sql("DELETE FROM known_browsers WHERE user_id = $1");
        forget.bind(user).run(self).await?;
        Ok(())
    }

    /// Deletes at most `limit` browsers without a sign-in since `before`; returns their number.
    pub async fn purge_browsers(
        &mut self,
        before: Timestamp,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let delete = "DELETE FROM known_browsers WHERE secret_hash IN
                      (SELECT secret_hash FROM known_browsers WHERE seen_at < $1
                       ORDER BY seen_at LIMIT $2)";
        sql(delete).bind(before).bind(limit).run(self).await
    }
}
