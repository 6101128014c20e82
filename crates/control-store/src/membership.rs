//! Memberships.

use crate::error::StoreError;
use crate::row::{id, named};
use crate::store::Transaction;
use control_domain::{Membership, Role};
use control_wire::{OrgId, UserId};
use sqlx::query;
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
        let sql = "INSERT INTO memberships (org_id, user_id, role, created_at, version)
                   VALUES ($1, $2, $3, $4, 1)";
        query(sql)
            .bind(org.to_string())
            .bind(user.to_string())
            .bind(role.name())
            .bind(created_at.as_millisecond())
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// The roles of a user, by organization.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn roles(&mut self, user: UserId) -> Result<BTreeMap<OrgId, Role>, StoreError> {
        let rows = query("SELECT org_id, role FROM memberships WHERE user_id = $1")
            .bind(user.to_string())
            .fetch_all(self.connection())
            .await?;
        rows.iter()
            .map(|row| Ok((id(row, "org_id")?, named(row, "role", Role::from_name)?)))
            .collect()
    }
}
