//! Users' identities at identity providers.

use crate::error::StoreError;
use crate::row::{id, text, time, written_rows};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::sql;
use crate::store::Transaction;
use crate::versioned::Page;
use control_domain::LinkedIdentity;
use control_wire::{IdentityId, OrgId, UserId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, org_id, issuer, subject, user_id, created_at, seen_at FROM identities ",
            $rest
        )
    };
}

impl Transaction {
    /// Inserts an identity.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the organization has a user with this issuer and subject.
    pub async fn insert_identity(&mut self, identity: &LinkedIdentity) -> Result<(), StoreError> {
        let LinkedIdentity {
            id,
            org,
            issuer,
            subject,
            user,
            created_at,
            seen_at,
        } = identity;
        let insert =
            "INSERT INTO identities (id, org_id, issuer, subject, user_id, created_at, seen_at)
                      VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let insert = sql(insert).bind(*id).bind(*org).bind(issuer.clone());
        let insert = insert.bind(subject.clone()).bind(*user);
        insert.bind(*created_at).bind(*seen_at).run(self).await?;
        Ok(())
    }

    /// The identity with this issuer and subject at the organization's provider.
    pub async fn identity(
        &mut self,
        org: OrgId,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<LinkedIdentity>, StoreError> {
        let by_name = select!("WHERE org_id = $1 AND issuer = $2 AND subject = $3");
        let by_name = sql(by_name).bind(org).bind(issuer).bind(subject);
        by_name.row(self).await?.as_ref().map(read).transpose()
    }

    /// The identity; `None` if it does not exist, or is another user's.
    pub async fn identity_of_user(
        &mut self,
        user: UserId,
        id: IdentityId,
    ) -> Result<Option<LinkedIdentity>, StoreError> {
        let by_id = select!("WHERE user_id = $1 AND id = $2");
        let row = sql(by_id).bind(user).bind(id).row(self).await?;
        row.as_ref().map(read).transpose()
    }

    /// The identities of a user.
    pub async fn identities_of_user(
        &mut self,
        user: UserId,
        page: Page,
    ) -> Result<Vec<LinkedIdentity>, StoreError> {
        let list = select!("WHERE user_id = ?");
        let list = ListQuery::new(list, user);
        let rows = list
            .sorted_rows(self, &SortColumns::BY_ID, None, page)
            .await?;
        rows.iter().map(read).collect()
    }

    /// Records the time of a sign-in by the identity.
    pub async fn see_identity(
        &mut self,
        identity: IdentityId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let update = sql("UPDATE identities SET seen_at = $1 WHERE id = $2");
        update.bind(now).bind(identity).run(self).await?;
        Ok(())
    }

    /// Deletes an identity of the user, and ends the user's sessions from its provider.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if the identity does not exist.
    pub async fn delete_identity(
        &mut self,
        identity: &LinkedIdentity,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM identities WHERE id = $1");
        written_rows(delete.bind(identity.id).run(self).await?)?;
        self.revoke_user_provider_sessions(identity.org, identity.user, now)
            .await?;
        Ok(())
    }

    /// Ends the user's sessions from the organization's identity provider.
    pub async fn revoke_user_provider_sessions(
        &mut self,
        org: OrgId,
        user: UserId,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let revoke = "UPDATE sessions SET revoked_at = $1
                      WHERE provider_org_id = $2 AND user_id = $3 AND revoked_at IS NULL";
        sql(revoke).bind(now).bind(org).bind(user).run(self).await
    }
}

fn read(row: &AnyRow) -> Result<LinkedIdentity, StoreError> {
    Ok(LinkedIdentity {
        id: id(row, "id")?,
        org: id(row, "org_id")?,
        issuer: text(row, "issuer")?,
        subject: text(row, "subject")?,
        user: id(row, "user_id")?,
        created_at: time(row, "created_at")?,
        seen_at: time(row, "seen_at")?,
    })
}
