//! The last sign-ins of a connection.

use crate::error::StoreError;
use crate::row::{optional_text, text, time};
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::OrgId;
use jiff::Timestamp;
use uuid::Uuid;

/// Sign-ins that a connection remembers.
const KEPT: i64 = 10;

/// A sign-in through an identity provider, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsoSignIn {
    /// When it ended.
    pub at: Timestamp,
    /// The rule that broke; none if the user was signed in.
    pub refusal: Option<String>,
    /// The user at the provider, if that was known.
    pub subject: Option<String>,
    /// The address, if that was known.
    pub email: Option<String>,
    /// The role that the groups gave.
    pub role: Option<String>,
    /// The reference that the user was shown.
    pub correlation_id: String,
}

impl Transaction {
    /// Remembers a sign-in in the place of the oldest of ten.
    pub async fn note_sso_sign_in(
        &mut self,
        (org, id): (OrgId, Uuid),
        sign_in: &SsoSignIn,
    ) -> Result<(), StoreError> {
        let SsoSignIn {
            at,
            refusal,
            subject,
            email,
            role,
            correlation_id,
        } = sign_in.clone();
        let insert = "INSERT INTO sso_sign_ins (id, org_id, at, refusal, subject, email, role, correlation_id)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let insert = sql(insert).bind(id).bind(org).bind(at).bind(refusal);
        let insert = insert.bind(subject).bind(email).bind(role);
        insert.bind(correlation_id).run(self).await?;
        let forget = "DELETE FROM sso_sign_ins WHERE org_id = $1 AND id NOT IN
                        (SELECT id FROM sso_sign_ins WHERE org_id = $1 ORDER BY id DESC LIMIT $2)";
        sql(forget).bind(org).bind(KEPT).run(self).await?;
        Ok(())
    }

    /// The last sign-ins of an organization's connection, at most ten, the newest first.
    pub async fn sso_sign_ins(&mut self, org: OrgId) -> Result<Vec<SsoSignIn>, StoreError> {
        let list = "SELECT at, refusal, subject, email, role, correlation_id FROM sso_sign_ins
                    WHERE org_id = $1 ORDER BY id DESC LIMIT $2";
        let rows = sql(list).bind(org).bind(KEPT).rows(self).await?;
        rows.iter()
            .map(|row| {
                Ok(SsoSignIn {
                    at: time(row, "at")?,
                    refusal: optional_text(row, "refusal")?,
                    subject: optional_text(row, "subject")?,
                    email: optional_text(row, "email")?,
                    role: optional_text(row, "role")?,
                    correlation_id: text(row, "correlation_id")?,
                })
            })
            .collect()
    }
}
