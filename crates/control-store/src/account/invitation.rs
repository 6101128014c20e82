//! Invitations: at most one per address in an organization.

use crate::error::StoreError;
use crate::row::{creator, id, named, text, time};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::sql;
use crate::store::Transaction;
use crate::versioned::{ListFilter, Page, SortColumn};
use control_domain::{Email, Invitation, Role};
use control_wire::{InvitationId, OrgId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

macro_rules! select {
    ($where:literal) => {
        concat!(
            "SELECT id, org_id, email, role, created_at, expires_at, made_by,
             (SELECT m.role FROM memberships m
               WHERE m.org_id = invitations.org_id AND m.user_id = invitations.made_by) AS maker_role,
             CAST(NULL AS TEXT) AS maker_project_role
             FROM invitations ",
            $where
        )
    };
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "id",
    columns: &[
        (SortColumn::Email, "email"),
        (SortColumn::ExpiresAt, "expires_at"),
    ],
};

impl Transaction {
    /// Stores an invitation; replaces an earlier one for the same address.
    pub async fn replace_invitation(
        &mut self,
        invitation: &Invitation,
        secret_hash: &str,
    ) -> Result<(), StoreError> {
        let Invitation {
            id,
            org,
            email,
            role,
            created_at,
            expires_at,
            made_by,
        } = invitation;
        let earlier = sql("DELETE FROM invitations WHERE org_id = $1 AND email = $2");
        earlier.bind(*org).bind(email.as_str()).run(self).await?;
        let insert = "INSERT INTO invitations (id, org_id, email, role, secret_hash, created_at,
                      expires_at, made_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        sql(insert)
            .bind(*id)
            .bind(*org)
            .bind(email.as_str())
            .bind(role.name())
            .bind(secret_hash)
            .bind(*created_at)
            .bind(*expires_at)
            .bind(made_by.map(|creator| creator.user))
            .run(self)
            .await?;
        Ok(())
    }

    /// The invitation; `None` if it was accepted or withdrawn.
    pub async fn invitation(
        &mut self,
        invitation: InvitationId,
    ) -> Result<Option<Invitation>, StoreError> {
        let row = sql(select!("WHERE id = $1"))
            .bind(invitation)
            .row(self)
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// The invitation with this hash of its secret, if there is one.
    pub async fn invitation_by_secret(
        &mut self,
        secret_hash: &str,
    ) -> Result<Option<Invitation>, StoreError> {
        let by_secret = sql(select!("WHERE secret_hash = $1"));
        let row = by_secret.bind(secret_hash).row(self).await?;
        row.as_ref().map(read).transpose()
    }

    /// The invitations of an organization. The filter's name matches the e-mail address.
    pub async fn invitations(
        &mut self,
        org: OrgId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Invitation>, StoreError> {
        let ListFilter { name, sort } = filter;
        let list = ListQuery::new(select!("WHERE org_id = ?"), org).named("email", name.as_deref());
        let rows = list.sorted_rows(self, &SORTED, sort.as_ref(), page).await?;
        rows.iter().map(read).collect()
    }

    /// Deletes an invitation, on its use or its withdrawal.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if it does not exist.
    pub async fn delete_invitation(&mut self, invitation: InvitationId) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM invitations WHERE id = $1");
        match delete.bind(invitation).run(self).await? {
            0 => Err(StoreError::Stale),
            _ => Ok(()),
        }
    }

    /// Deletes at most `limit` expired invitations; returns their number.
    pub async fn purge_invitations(
        &mut self,
        now: Timestamp,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let delete = "DELETE FROM invitations WHERE id IN
                      (SELECT id FROM invitations WHERE expires_at <= $1
                       ORDER BY expires_at LIMIT $2)";
        sql(delete).bind(now).bind(limit).run(self).await
    }
}

fn read(row: &AnyRow) -> Result<Invitation, StoreError> {
    Ok(Invitation {
        id: id(row, "id")?,
        org: id(row, "org_id")?,
        email: Email::stored(text(row, "email")?),
        role: named(row, "role", Role::from_name)?,
        created_at: time(row, "created_at")?,
        expires_at: time(row, "expires_at")?,
        made_by: creator(row)?,
    })
}
