//! Secrets of authenticator apps, and recovery codes.

use crate::error::StoreError;
use crate::row::{id, number, optional_time, text, written_rows};
use crate::statement::sql;
use crate::store::Transaction;
use control_auth::Sealed;
use control_wire::UserId;
use jiff::Timestamp;

/// The secret of a user's authenticator app, sealed with the context `totp/{user}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTotp {
    /// Secret, sealed by the master key.
    pub sealed: Sealed,
    /// Time when a code proved that the app has the secret; `None` before that.
    pub confirmed_at: Option<Timestamp>,
    /// Time step of the last accepted code.
    pub last_step: i64,
}

impl Transaction {
    /// The user's secret, confirmed or not.
    pub async fn totp(&mut self, user: UserId) -> Result<Option<StoredTotp>, StoreError> {
        let by_user = "SELECT master_key, sealed, confirmed_at, last_step FROM totp
                       WHERE user_id = $1";
        let row = sql(by_user).bind(user).row(self).await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(StoredTotp {
            sealed: Sealed {
                master_key: text(&row, "master_key")?,
                text: text(&row, "sealed")?,
            },
            confirmed_at: optional_time(&row, "confirmed_at")?,
            last_step: number(&row, "last_step")?,
        }))
    }

    /// Stores an unconfirmed secret; replaces an earlier unconfirmed one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if the user has a confirmed secret.
    pub async fn start_totp(
        &mut self,
        user: UserId,
        sealed: &Sealed,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let insert = "INSERT INTO totp (user_id, master_key, sealed, created_at, last_step)
                      VALUES ($1, $2, $3, $4, 0)
                      ON CONFLICT (user_id) DO UPDATE
                        SET master_key = $2, sealed = $3, created_at = $4, last_step = 0
                        WHERE totp.confirmed_at IS NULL";
        let insert = sql(insert).bind(user).bind(sealed.master_key.as_str());
        let insert = insert.bind(sealed.text.as_str()).bind(now);
        written_rows(insert.run(self).await?)
    }

    /// Confirms the secret `sealed` by the code of this time step.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if the secret is confirmed already, or was replaced.
    pub async fn confirm_totp(
        &mut self,
        user: UserId,
        sealed: &Sealed,
        step: i64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let confirm = "UPDATE totp SET confirmed_at = $1, last_step = $2
                       WHERE user_id = $3 AND sealed = $4 AND confirmed_at IS NULL";
        let confirm = sql(confirm).bind(now).bind(step).bind(user);
        written_rows(confirm.bind(sealed.text.as_str()).run(self).await?)?;
        let seen = sql("UPDATE users SET second_factor_reset_at = NULL WHERE id = $1");
        seen.bind(user).run(self).await?;
        Ok(())
    }

    /// Uses up the code of a time step; returns false if the code of this or a later step was used
    /// before.
    pub async fn use_totp_step(&mut self, user: UserId, step: i64) -> Result<bool, StoreError> {
        let used = "UPDATE totp SET last_step = $1
                    WHERE user_id = $2 AND last_step < $1 AND confirmed_at IS NOT NULL";
        Ok(0 < sql(used).bind(step).bind(user).run(self).await?)
    }

    /// Deletes the user's secret and recovery codes; returns true if the secret was confirmed.
    pub async fn delete_second_factor(&mut self, user: UserId) -> Result<bool, StoreError> {
        let codes = sql("DELETE FROM recovery_codes WHERE user_id = $1");
        codes.bind(user).run(self).await?;
        let secret = "DELETE FROM totp WHERE user_id = $1 RETURNING confirmed_at";
        let row = sql(secret).bind(user).row(self).await?;
        let Some(row) = row else { return Ok(false) };
        let weaken = "UPDATE sessions SET method = CASE method
                        WHEN 'password+totp' THEN 'password'
                        WHEN 'password+recovery_code' THEN 'password'
                        WHEN 'oidc+totp' THEN 'oidc'
                        WHEN 'saml+totp' THEN 'saml'
                        ELSE method END
                      WHERE user_id = $1";
        sql(weaken).bind(user).run(self).await?;
        Ok(optional_time(&row, "confirmed_at")?.is_some())
    }

    /// Records that an administrator removed the user's second factor.
    pub async fn note_second_factor_reset(
        &mut self,
        user: UserId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let note = sql("UPDATE users SET second_factor_reset_at = $1 WHERE id = $2");
        note.bind(now).bind(user).run(self).await?;
        Ok(())
    }

    /// Time when an administrator removed the user's second factor; `None` if the user has set up
    /// another.
    pub async fn second_factor_reset_at(
        &mut self,
        user: UserId,
    ) -> Result<Option<Timestamp>, StoreError> {
        let noted = sql("SELECT second_factor_reset_at FROM users WHERE id = $1");
        let row = noted.bind(user).row(self).await?;
        let Some(row) = row else { return Ok(None) };
        optional_time(&row, "second_factor_reset_at")
    }

    /// Stores the hashes of new recovery codes; replaces all earlier ones.
    pub async fn replace_recovery_codes(
        &mut self,
        user: UserId,
        hashes: &[String],
    ) -> Result<(), StoreError> {
        let earlier = sql("DELETE FROM recovery_codes WHERE user_id = $1");
        earlier.bind(user).run(self).await?;
        for hash in hashes {
            let insert = sql("INSERT INTO recovery_codes (user_id, hash) VALUES ($1, $2)");
            insert.bind(user).bind(hash.as_str()).run(self).await?;
        }
        Ok(())
    }

    /// Uses up the recovery code with this hash; returns false if the user has no such unused code.
    pub async fn use_recovery_code(
        &mut self,
        user: UserId,
        hash: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let used = "UPDATE recovery_codes SET used_at = $1
                    WHERE user_id = $2 AND hash = $3 AND used_at IS NULL";
        let used = sql(used).bind(now).bind(user).bind(hash);
        Ok(0 < used.run(self).await?)
    }

    /// Number of the user's unused recovery codes.
    pub async fn recovery_codes_left(&mut self, user: UserId) -> Result<i64, StoreError> {
        let left = "SELECT COUNT(*) AS codes FROM recovery_codes
                    WHERE user_id = $1 AND used_at IS NULL";
        let row = sql(left).bind(user).row(self).await?;
        row.map_or(Ok(0), |row| number(&row, "codes"))
    }

    /// At most `limit` users with secrets sealed by another key than `master_key`.
    pub async fn totp_not_sealed_with(
        &mut self,
        master_key: &str,
        limit: i64,
    ) -> Result<Vec<(UserId, Sealed)>, StoreError> {
        let others = "SELECT user_id, master_key, sealed FROM totp
                      WHERE master_key <> $1 ORDER BY user_id LIMIT $2";
        let rows = sql(others).bind(master_key).bind(limit).rows(self).await?;
        let secrets = rows.iter().map(|row| {
            let sealed = Sealed {
                master_key: text(row, "master_key")?,
                text: text(row, "sealed")?,
            };
            Ok((id(row, "user_id")?, sealed))
        });
        secrets.collect()
    }

    /// Replaces the sealed secret by one under another master key; `before` is the earlier form.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if the secret does not exist or was replaced.
    pub async fn reseal_totp(
        &mut self,
        user: UserId,
        before: &Sealed,
        sealed: &Sealed,
    ) -> Result<(), StoreError> {
        let reseal =
            "UPDATE totp SET master_key = $1, sealed = $2 WHERE user_id = $3 AND sealed = $4";
        let reseal = sql(reseal).bind(sealed.master_key.as_str());
        let reseal = reseal.bind(sealed.text.as_str()).bind(user);
        written_rows(reseal.bind(before.text.as_str()).run(self).await?)
    }
}
