//! Sessions of users.

use crate::error::StoreError;
use crate::row::{address, id, named, optional_id, optional_time, text, time, written_rows};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::sql;
use crate::store::Transaction;
use crate::versioned::Page;
use control_domain::{Session, SessionOrigin, SignInMethod};
use control_wire::{OrgId, SessionId, UserId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, user_id, method, provider_org_id, address, browser, created_at, seen_at,
             strong_until, ends_at, revoked_at FROM sessions ",
            $rest
        )
    };
}

/// Filter of a user's open sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionFilter {
    /// Every session.
    Every,
    /// Sessions that only this organization's identity provider confirmed.
    VouchedBy(OrgId),
}

impl Transaction {
    /// Inserts a session under the hash of its secret, and stores its start as the user's last
    /// sign-in.
    pub async fn insert_session(
        &mut self,
        session: &Session,
        secret_hash: &str,
    ) -> Result<(), StoreError> {
        let Session {
            id,
            user,
            origin,
            created_at,
            seen_at,
            strong_until,
            ends_at,
            revoked_at,
        } = session;
        let SessionOrigin {
            method,
            provider,
            address,
            browser,
        } = origin;
        let insert = "INSERT INTO sessions (id, user_id, secret_hash, method, provider_org_id,
                      address, browser, created_at, seen_at, strong_until, ends_at, revoked_at)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let insert = sql(insert).bind(*id).bind(*user).bind(secret_hash);
        let insert = insert.bind(method.name()).bind(*provider);
        let insert = insert.bind(address.map(|address| address.to_string()));
        let insert = insert.bind(browser.as_str());
        let insert = insert.bind(*created_at).bind(*seen_at);
        let insert = insert.bind(*strong_until).bind(*ends_at);
        insert.bind(*revoked_at).run(self).await?;
        // Not conditional on the stored time, which a clock that was ahead may have written.
        let sign_in = "UPDATE users SET last_sign_in_at = $1 WHERE id = $2";
        sql(sign_in).bind(*created_at).bind(*user).run(self).await?;
        Ok(())
    }

    /// The session with this hash of its secret.
    pub async fn session_by_secret(
        &mut self,
        secret_hash: &str,
    ) -> Result<Option<Session>, StoreError> {
        let by_secret = sql(select!("WHERE secret_hash = $1"));
        let row = by_secret.bind(secret_hash).row(self).await?;
        row.as_ref().map(read).transpose()
    }

    /// The session; `None` if it does not exist.
    pub async fn session(&mut self, session: SessionId) -> Result<Option<Session>, StoreError> {
        let by_id = sql(select!("WHERE id = $1"));
        let row = by_id.bind(session).row(self).await?;
        row.as_ref().map(read).transpose()
    }

    /// The sessions of a user that are open at `now`.
    pub async fn sessions_of_user(
        &mut self,
        user: UserId,
        filter: SessionFilter,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<Session>, StoreError> {
        let list = ListQuery::new(select!("WHERE revoked_at IS NULL AND user_id = ?"), user);
        let list = list.and("ends_at > ?", Some(now));
        let list = list.and("seen_at > ?", Some(Session::idle_before(now)));
        let list = match filter {
            SessionFilter::Every => list,
            SessionFilter::VouchedBy(org) => {
                let methods = SignInMethod::ALL.iter().filter(|it| it.is_vouched_only());
                list.one_of("method", methods.map(|it| it.name()))
                    .and("provider_org_id = ?", Some(org))
            }
        };
        let rows = list
            .sorted_rows(self, &SortColumns::BY_ID, None, page)
            .await?;
        rows.iter().map(read).collect()
    }

    /// Records the time of a request with the session.
    pub async fn see_session(
        &mut self,
        session: SessionId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let see = sql("UPDATE sessions SET seen_at = $1 WHERE id = $2 AND seen_at < $1");
        see.bind(now).bind(session).run(self).await?;
        Ok(())
    }

    /// Stores the time up to which the session's proof of identity is fresh.
    pub async fn date_session_proof(
        &mut self,
        session: SessionId,
        strong_until: Timestamp,
    ) -> Result<(), StoreError> {
        let date = sql("UPDATE sessions SET strong_until = $1 WHERE id = $2");
        date.bind(strong_until).bind(session).run(self).await?;
        Ok(())
    }

    /// Moves the session's end forward to `ends_at`; an earlier end is kept.
    pub async fn shorten_session(
        &mut self,
        session: SessionId,
        ends_at: Timestamp,
    ) -> Result<(), StoreError> {
        let shorten = sql("UPDATE sessions SET ends_at = $1 WHERE id = $2 AND ends_at > $1");
        shorten.bind(ends_at).bind(session).run(self).await?;
        Ok(())
    }

    /// Stores a renewed proof of identity, and the hash of the session's new secret.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if the session was revoked.
    pub async fn strengthen_session(
        &mut self,
        session: &Session,
        secret_hash: &str,
    ) -> Result<(), StoreError> {
        let strengthen = "UPDATE sessions SET secret_hash = $1, method = $2, strong_until = $3
                          WHERE id = $4 AND revoked_at IS NULL";
        let strengthen = sql(strengthen).bind(secret_hash);
        let strengthen = strengthen.bind(session.origin.method.name());
        let strengthen = strengthen.bind(session.strong_until).bind(session.id);
        written_rows(strengthen.run(self).await?)
    }

    /// Revokes the session.
    pub async fn revoke_session(
        &mut self,
        session: SessionId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let revoke = "UPDATE sessions SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL";
        sql(revoke).bind(now).bind(session).run(self).await?;
        Ok(())
    }

    /// Ends the user's sessions except `kept`, and its pending sign-ins; returns the number of
    /// sessions.
    pub async fn revoke_sessions(
        &mut self,
        user: UserId,
        kept: Option<SessionId>,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let pending = sql("DELETE FROM pending_sign_ins WHERE user_id = $1");
        pending.bind(user).run(self).await?;
        let revoke = "UPDATE sessions SET revoked_at = $1
                      WHERE user_id = $2 AND id <> $3 AND revoked_at IS NULL AND ends_at > $1";
        let kept = kept.map(|id| id.to_string()).unwrap_or_default();
        let revoke = sql(revoke).bind(now).bind(user).bind(kept);
        revoke.run(self).await
    }

    /// Ends every session and every pending sign-in; returns the number of sessions.
    pub async fn revoke_every_session(&mut self, now: Timestamp) -> Result<u64, StoreError> {
        sql("DELETE FROM pending_sign_ins").run(self).await?;
        let revoke =
            "UPDATE sessions SET revoked_at = $1 WHERE revoked_at IS NULL AND ends_at > $1";
        sql(revoke).bind(now).run(self).await
    }

    /// Deletes at most `limit` sessions without a request since `before`; returns their number.
    pub async fn purge_sessions(
        &mut self,
        before: Timestamp,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let delete = "DELETE FROM sessions WHERE id IN
                      (SELECT id FROM sessions WHERE seen_at < $1 ORDER BY seen_at LIMIT $2)
                      AND seen_at < $1";
        sql(delete).bind(before).bind(limit).run(self).await
    }
}

fn read(row: &AnyRow) -> Result<Session, StoreError> {
    Ok(Session {
        id: id(row, "id")?,
        user: id(row, "user_id")?,
        origin: SessionOrigin {
            method: named(row, "method", SignInMethod::from_name)?,
            provider: optional_id(row, "provider_org_id")?,
            address: address(row, "address")?,
            browser: text(row, "browser")?,
        },
        created_at: time(row, "created_at")?,
        seen_at: time(row, "seen_at")?,
        strong_until: time(row, "strong_until")?,
        ends_at: time(row, "ends_at")?,
        revoked_at: optional_time(row, "revoked_at")?,
    })
}
