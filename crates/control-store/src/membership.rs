//! Memberships.

use crate::error::StoreError;
use crate::row::{id, named};
use crate::statement::sql;
use crate::store::Transaction;
use control_domain::{Membership, Role};
use control_wire::{OrgId, UserId};
use std::collections::BTreeMap;

impl Transaction {
    /// Inserts a new membership.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the user is a member already.
    pub async fn insert_membership(&mut self, membership: Membership) -> Result<(), StoreError> {
        let Membership {
            org,
            user,
            role,
            created_at,
        } = membership;
        let insert = "INSERT INTO memberships (org_id, user_id, role, created_at, version)
                      VALUES ($1, $2, $3, $4, 1)";
        let insert = sql(insert).bind(org).bind(user).bind(role.name());
        insert.bind(created_at).run(self).await?;
        Ok(())
    }

    /// The roles of a user, by organization.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn roles(&mut self, user: UserId) -> Result<BTreeMap<OrgId, Role>, StoreError> {
        let of_user = sql("SELECT org_id, role FROM memberships WHERE user_id = $1");
        let rows = of_user.bind(user).rows(self).await?;
        rows.iter()
            .map(|row| Ok((id(row, "org_id")?, named(row, "role", Role::from_name)?)))
            .collect()
    }
}
