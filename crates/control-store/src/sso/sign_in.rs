//! Recent sign-ins of a connection.

use crate::error::StoreError;
use crate::row::{optional_text, text, time, truth};
use crate::statement::sql;
use crate::store::Transaction;
use control_wire::OrgId;
use jiff::Timestamp;
use uuid::Uuid;

/// Maximum number of stored sign-ins per connection, counted separately for users that the provider
/// confirmed and for the rest: any client can cause the latter, and they must not displace the
/// former.
const MAX_SIGN_INS: i64 = 10;

/// A sign-in through an identity provider, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsoSignIn {
    /// Time of completion or failure.
    pub at: Timestamp,
    /// The violated rule; `None` if the user was signed in.
    pub refusal: Option<String>,
    /// The provider's identifier of the user, if known.
    pub subject: Option<String>,
    /// The user's address, if known.
    pub email: Option<String>,
    /// Role that the groups map to.
    pub role: Option<String>,
    /// Correlation ID shown to the user.
    pub correlation_id: String,
    /// True for an administrator's trial of the connection, which starts no session.
    pub is_trial: bool,
}

impl Transaction {
    /// Stores a sign-in; deletes the oldest of more than ten of its kind, with or without a
    /// subject.
    pub async fn note_sso_sign_in(
        &mut self,
        org: OrgId,
        id: Uuid,
        sign_in: &SsoSignIn,
    ) -> Result<(), StoreError> {
        let SsoSignIn {
            at,
            refusal,
            subject,
            email,
            role,
            correlation_id,
            is_trial,
        } = sign_in.clone();
        let is_vouched = subject.is_some();
        let insert = "INSERT INTO sso_sign_ins
                        (id, org_id, at, refusal, subject, email, role, correlation_id, is_trial)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let insert = sql(insert).bind(id).bind(org).bind(at).bind(refusal);
        let insert = insert.bind(subject).bind(email).bind(role);
        let insert = insert.bind(correlation_id).bind(i64::from(is_trial));
        insert.run(self).await?;
        let forget = if is_vouched {
            "DELETE FROM sso_sign_ins WHERE org_id = $1 AND subject IS NOT NULL AND id NOT IN
               (SELECT id FROM sso_sign_ins WHERE org_id = $1 AND subject IS NOT NULL
                ORDER BY id DESC LIMIT $2)"
        } else {
            "DELETE FROM sso_sign_ins WHERE org_id = $1 AND subject IS NULL AND id NOT IN
               (SELECT id FROM sso_sign_ins WHERE org_id = $1 AND subject IS NULL
                ORDER BY id DESC LIMIT $2)"
        };
        sql(forget).bind(org).bind(MAX_SIGN_INS).run(self).await?;
        Ok(())
    }

    /// Recent sign-ins of a connection, newest first.
    pub async fn sso_sign_ins(&mut self, org: OrgId) -> Result<Vec<SsoSignIn>, StoreError> {
        let list =
            "SELECT at, refusal, subject, email, role, correlation_id, is_trial FROM sso_sign_ins
                    WHERE org_id = $1 ORDER BY id DESC LIMIT $2";
        let rows = sql(list)
            .bind(org)
            .bind(2 * MAX_SIGN_INS)
            .rows(self)
            .await?;
        rows.iter()
            .map(|row| {
                Ok(SsoSignIn {
                    at: time(row, "at")?,
                    refusal: optional_text(row, "refusal")?,
                    subject: optional_text(row, "subject")?,
                    email: optional_text(row, "email")?,
                    role: optional_text(row, "role")?,
                    correlation_id: text(row, "correlation_id")?,
                    is_trial: truth(row, "is_trial")?,
                })
            })
            .collect()
    }
}
