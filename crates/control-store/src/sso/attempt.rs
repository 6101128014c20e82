//! Sign-ins in progress through identity providers, and used assertions.

use crate::error::StoreError;
use crate::row::{id, json, optional_id, text, time, truth};
use crate::sso::connection::to_json;
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::{SsoAttemptContents, SsoPurpose};
use control_sso::AssertedUser;
use control_wire::OrgId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;

/// A sign-in in progress, or a verified response that waits for its browser.
#[derive(Clone, Debug, PartialEq)]
pub struct SsoPending<T> {
    /// Hash of the single-use secret that identifies it.
    pub hash: String,
    /// Hash of the cookie secret of the browser that began the sign-in, or that posted an
    /// unsolicited response.
    pub browser_hash: String,
    /// Organization of the connection.
    pub org: OrgId,
    /// Data that depends on the protocol.
    pub contents: T,
    /// Path to redirect the browser to afterwards.
    pub return_to: String,
    /// Purpose, with the user if the browser was signed in.
    pub purpose: SsoPurpose,
    /// Time of expiry.
    pub ends_at: Timestamp,
}

/// A verified SAML response under its ticket. Its JSON is the user's, with one more field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SsoTicketContents {
    /// The user that the response asserts.
    #[serde(flatten)]
    pub asserted: AssertedUser,
    /// True if no browser asked for the response. An unsolicited ticket of an earlier release has no
    /// browser, and is refused.
    #[serde(default)]
    pub is_unsolicited: bool,
}

impl Transaction {
    /// Stores a sign-in in progress.
    pub async fn insert_sso_attempt(
        &mut self,
        attempt: &SsoPending<SsoAttemptContents>,
    ) -> Result<(), StoreError> {
        let insert = "INSERT INTO sign_in_attempts
                        (hash, browser_hash, org_id, contents, return_to, user_id, is_trial, is_proof, ends_at)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let contents = to_json(&attempt.contents, "contents")?;
        self.insert_pending(insert, attempt, contents).await
    }

    /// Removes and returns the attempt with this hash; `None` if it was taken before.
    pub async fn take_sso_attempt(
        &mut self,
        hash: &str,
    ) -> Result<Option<SsoPending<SsoAttemptContents>>, StoreError> {
        let delete = "DELETE FROM sign_in_attempts WHERE hash = $1
                      RETURNING hash, browser_hash, org_id, contents, return_to, user_id, is_trial,
                        is_proof, ends_at";
        let row = sql(delete).bind(hash).row(self).await?;
        row.as_ref()
            .map(|row| read(row, json(row, "contents")?))
            .transpose()
    }

    /// Stores a verified response that waits for its browser.
    pub async fn insert_sso_ticket(
        &mut self,
        ticket: &SsoPending<SsoTicketContents>,
    ) -> Result<(), StoreError> {
        let insert = "INSERT INTO sign_in_tickets
                        (hash, browser_hash, org_id, asserted, return_to, user_id, is_trial, is_proof, ends_at)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let asserted = to_json(&ticket.contents, "asserted")?;
        self.insert_pending(insert, ticket, asserted).await
    }

    /// Removes and returns the ticket with this hash; `None` if it was taken before.
    pub async fn take_sso_ticket(
        &mut self,
        hash: &str,
    ) -> Result<Option<SsoPending<SsoTicketContents>>, StoreError> {
        let delete = "DELETE FROM sign_in_tickets WHERE hash = $1
                      RETURNING hash, browser_hash, org_id, asserted, return_to, user_id, is_trial,
                        is_proof, ends_at";
        let row = sql(delete).bind(hash).row(self).await?;
        row.as_ref()
            .map(|row| read(row, json(row, "asserted")?))
            .transpose()
    }

    async fn insert_pending<T>(
        &mut self,
        insert: &'static str,
        pending: &SsoPending<T>,
        contents: String,
    ) -> Result<(), StoreError> {
        let SsoPending {
            hash,
            browser_hash,
            org,
            contents: _,
            return_to,
            purpose,
            ends_at,
        } = pending;
        let insert = sql(insert).bind(hash.clone()).bind(browser_hash.clone());
        let insert = insert.bind(*org).bind(contents).bind(return_to.clone());
        let insert = insert
            .bind(purpose.user())
            .bind(i64::from(purpose.is_trial()))
            .bind(i64::from(purpose.is_proof()));
        insert.bind(*ends_at).run(self).await?;
        Ok(())
    }

    /// Marks an assertion as used, until it expires.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the assertion was used before.
    pub async fn use_assertion(
        &mut self,
        org: OrgId,
        hash: &str,
        ends_at: Timestamp,
    ) -> Result<(), StoreError> {
        let insert = "INSERT INTO used_assertions (org_id, hash, ends_at) VALUES ($1, $2, $3)";
        sql(insert)
            .bind(org)
            .bind(hash)
            .bind(ends_at)
            .run(self)
            .await?;
        Ok(())
    }

    /// Deletes expired rows of three tables, at most `limit` each; returns their number.
    pub async fn purge_sso(&mut self, now: Timestamp, limit: i64) -> Result<u64, StoreError> {
        let mut deleted = 0;
        for purge in [
            "DELETE FROM sign_in_attempts WHERE hash IN
               (SELECT hash FROM sign_in_attempts WHERE ends_at <= $1 LIMIT $2)",
            "DELETE FROM sign_in_tickets WHERE hash IN
               (SELECT hash FROM sign_in_tickets WHERE ends_at <= $1 LIMIT $2)",
            "DELETE FROM used_assertions WHERE hash IN
               (SELECT hash FROM used_assertions WHERE ends_at <= $1 LIMIT $2) AND ends_at <= $1",
        ] {
            deleted += sql(purge).bind(now).bind(limit).run(self).await?;
        }
        Ok(deleted)
    }
}

fn read<T>(row: &AnyRow, contents: T) -> Result<SsoPending<T>, StoreError> {
    let (is_trial, is_proof) = (truth(row, "is_trial")?, truth(row, "is_proof")?);
    let purpose = match optional_id(row, "user_id")? {
        None => SsoPurpose::SignIn,
        Some(user) if is_trial => SsoPurpose::Trial(user),
        Some(user) if is_proof => SsoPurpose::Proof(user),
        Some(user) => SsoPurpose::Link(user),
    };
    Ok(SsoPending {
        hash: text(row, "hash")?,
        browser_hash: text(row, "browser_hash")?,
        org: id(row, "org_id")?,
        contents,
        return_to: text(row, "return_to")?,
        purpose,
        ends_at: time(row, "ends_at")?,
    })
}
