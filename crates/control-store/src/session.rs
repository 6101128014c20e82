//! Sessions.

use crate::error::StoreError;
use crate::row::{id, millis, optional_time, time};
use crate::statement::Write;
use crate::store::Transaction;
use control_domain::Session;
use control_wire::SessionId;
use jiff::Timestamp;
use sqlx::any::AnyRow;
use sqlx::query;

impl Transaction {
    /// Inserts a new session under the hash of its secret.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn insert_session(
        &mut self,
        session: Session,
        secret_hash: &str,
    ) -> Result<(), StoreError> {
        let Session {
            id,
            user,
            created_at,
            seen_at,
            revoked_at,
        } = session;
        let sql = "INSERT INTO sessions (id, user_id, secret_hash, created_at, seen_at, revoked_at)
                   VALUES ($1, $2, $3, $4, $5, $6)";
        query(sql)
            .bind(id.to_string())
            .bind(user.to_string())
            .bind(secret_hash)
            .bind(created_at.as_millisecond())
            .bind(seen_at.as_millisecond())
            .bind(millis(revoked_at))
            .write_in(self)
            .await?;
        Ok(())
    }

    /// The session with this hash of its secret, if there is one.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn session_by_secret(
        &mut self,
        secret_hash: &str,
    ) -> Result<Option<Session>, StoreError> {
        let sql = "SELECT id, user_id, created_at, seen_at, revoked_at FROM sessions
                   WHERE secret_hash = $1";
        let row = query(sql)
            .bind(secret_hash)
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// Notes a request of the session.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn see_session(
        &mut self,
        session: SessionId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        query("UPDATE sessions SET seen_at = $1 WHERE id = $2 AND seen_at < $1")
            .bind(now.as_millisecond())
            .bind(session.to_string())
            .write_in(self)
            .await?;
        Ok(())
    }

    /// Lets the session end at `ends_at`, unless it ends earlier.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn shorten_session(
        &mut self,
        session: SessionId,
        ends_at: Timestamp,
    ) -> Result<(), StoreError> {
        query("UPDATE sessions SET ends_at = $1 WHERE id = $2 AND ends_at > $1")
            .bind(ends_at.as_millisecond())
            .bind(session.to_string())
            .write_in(self)
            .await?;
        Ok(())
    }

    /// Ends the session.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn revoke_session(
        &mut self,
        session: SessionId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        query("UPDATE sessions SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL")
            .bind(now.as_millisecond())
            .bind(session.to_string())
            .write_in(self)
            .await?;
        Ok(())
    }
}

fn read(row: &AnyRow) -> Result<Session, StoreError> {
    Ok(Session {
        id: id(row, "id")?,
        user: id(row, "user_id")?,
        created_at: time(row, "created_at")?,
        seen_at: time(row, "seen_at")?,
        revoked_at: optional_time(row, "revoked_at")?,
    })
}
