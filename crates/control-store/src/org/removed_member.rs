//! Members that an administrator removed and that were not readmitted.

use crate::error::StoreError;
use crate::row::{id, text, time};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::sql;
use crate::store::Transaction;
use crate::versioned::{ListFilter, Page, SortColumn};
use control_domain::{Email, Name};
use control_wire::{OrgId, UserId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

/// A user that an administrator removed from an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedMember {
    /// The former member.
    pub user: UserId,
    /// The address that the user signs in with.
    pub email: Email,
    /// The user's name.
    pub name: Name,
    /// Time of the removal.
    pub removed_at: Timestamp,
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "r.user_id",
    columns: &[
        (SortColumn::Name, "u.name"),
        (SortColumn::Email, "u.email"),
        (SortColumn::CreatedAt, "r.removed_at"),
    ],
};

impl Transaction {
    /// Records that an administrator removed the member.
    pub async fn note_removed_member(
        &mut self,
        org: OrgId,
        user: UserId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let insert = "INSERT INTO removed_members (org_id, user_id, removed_at) VALUES ($1, $2, $3)
             ON CONFLICT (org_id, user_id) DO UPDATE SET removed_at = $3";
        let insert = sql(insert).bind(org).bind(user).bind(now);
        insert.run(self).await?;
        Ok(())
    }

    /// Returns true if an administrator removed the user, and the user was not readmitted.
    pub async fn is_removed_member(
        &mut self,
        org: OrgId,
        user: UserId,
    ) -> Result<bool, StoreError> {
        let found = sql("SELECT user_id FROM removed_members WHERE org_id = $1 AND user_id = $2");
        Ok(found.bind(org).bind(user).row(self).await?.is_some())
    }

    /// Readmits the user; returns false if the user was not removed.
    pub async fn readmit_member(&mut self, org: OrgId, user: UserId) -> Result<bool, StoreError> {
        let delete = sql("DELETE FROM removed_members WHERE org_id = $1 AND user_id = $2");
        Ok(0 < delete.bind(org).bind(user).run(self).await?)
    }

    /// The removed members of an organization. The filter's name matches the e-mail address.
    pub async fn removed_members(
        &mut self,
        org: OrgId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<RemovedMember>, StoreError> {
        let ListFilter { name, sort } = filter;
        let select = "SELECT r.user_id AS user_id, r.removed_at AS removed_at,
                        u.email AS email, u.name AS name
                      FROM removed_members r JOIN users u ON u.id = r.user_id WHERE r.org_id = ?";
        let list = ListQuery::new(select, org).named("u.email", name.as_deref());
        let rows = list.sorted_rows(self, &SORTED, sort.as_ref(), page).await?;
        rows.iter().map(read).collect()
    }
}

fn read(row: &AnyRow) -> Result<RemovedMember, StoreError> {
    Ok(RemovedMember {
        user: id(row, "user_id")?,
        email: Email::stored(text(row, "email")?),
        name: Name::stored(text(row, "name")?),
        removed_at: time(row, "removed_at")?,
    })
}
