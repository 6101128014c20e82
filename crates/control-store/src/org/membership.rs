//! Memberships.

use crate::error::StoreError;
use crate::row::{id, named, optional_id, optional_time, text, time, truth, versioned};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{ListFilter, Page, SortColumn, Versioned};
use control_domain::{Email, Membership, Name, Role, UserRights};
use control_wire::{OrgId, UserId};
use jiff::Timestamp;
use sqlx::any::AnyRow;
use std::collections::BTreeMap;

/// A membership, with data of its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Organization, user and role.
    pub membership: Membership,
    /// The address that the user signs in with.
    pub email: Email,
    /// The user's name.
    pub name: Name,
    /// True if the user has a second factor.
    pub second_factor: bool,
    /// Start of the user's newest session, in whichever organization.
    pub last_sign_in_at: Option<Timestamp>,
}

macro_rules! select {
    ($where:literal) => {
        concat!(
            "SELECT m.org_id AS org_id, m.user_id AS user_id, m.role AS role,
               m.created_at AS created_at, m.version AS version, u.email AS email, u.name AS name,
               u.last_sign_in_at AS last_sign_in_at, t.confirmed_at AS confirmed_at
             FROM memberships m JOIN users u ON u.id = m.user_id
               LEFT JOIN totp t ON t.user_id = m.user_id ",
            $where
        )
    };
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "m.user_id",
    columns: &[
        (SortColumn::Name, "u.name"),
        (SortColumn::Email, "u.email"),
        (SortColumn::CreatedAt, "m.created_at"),
    ],
};

impl Transaction {
    /// Inserts a membership, also for a user that was removed before. Deletes the user's password
    /// reset, because the administrator that created it has no power in this organization.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the user is already a member.
    pub async fn insert_membership(&mut self, membership: Membership) -> Result<(), StoreError> {
        let Membership {
            org,
            user,
            role,
            created_at,
        } = membership;
        self.delete_password_reset(user).await?;
        self.readmit_member(org, user).await?;
        let insert = "INSERT INTO memberships (org_id, user_id, role, created_at, version)
                      VALUES ($1, $2, $3, $4, 1)";
        let insert = sql(insert).bind(org).bind(user).bind(role.name());
        insert.bind(created_at).run(self).await?;
        Ok(())
    }

    /// The roles of a user, by organization.
    pub async fn roles(&mut self, user: UserId) -> Result<BTreeMap<OrgId, Role>, StoreError> {
        Ok(self.rights(user).await?.roles)
    }

    /// The user's current rights.
    pub async fn rights(&mut self, user: UserId) -> Result<UserRights, StoreError> {
        let both = "SELECT m.org_id AS org_id, CAST(NULL AS TEXT) AS project_id, m.role AS role,
                      o.second_factor AS second_factor
                    FROM memberships m JOIN orgs o ON o.id = m.org_id WHERE m.user_id = $1
                    UNION ALL
                    SELECT CAST(NULL AS TEXT), r.project_id, r.role, 0
                    FROM project_roles r WHERE r.user_id = $1";
        let mut rights = UserRights::default();
        for row in sql(both).bind(user).rows(self).await? {
            let role = named(&row, "role", Role::from_name)?;
            if let Some(project) = optional_id(&row, "project_id")? {
                rights.project_roles.insert(project, role);
                continue;
            }
            let org = id(&row, "org_id")?;
            rights.roles.insert(org, role);
            if truth(&row, "second_factor")? {
                rights.guarded.insert(org);
            }
        }
        Ok(rights)
    }

    /// The member; `None` if the user is not a member.
    pub async fn member(
        &mut self,
        org: OrgId,
        user: UserId,
    ) -> Result<Option<Versioned<Member>>, StoreError> {
        let member = sql(select!("WHERE m.org_id = $1 AND m.user_id = $2"));
        member.bind(org).bind(user).one(self).await
    }

    /// The members of an organization, in the order in which their users were created. The filter's
    /// name matches the e-mail address.
    pub async fn members(
        &mut self,
        org: OrgId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<Member>>, StoreError> {
        let ListFilter { name, sort } = filter;
        let list =
            ListQuery::new(select!("WHERE m.org_id = ?"), org).named("u.email", name.as_deref());
        list.sorted(self, &SORTED, sort.as_ref(), page).await
    }

    /// Returns true if a user other than `user` administers the organization. Locks the
    /// organization until this transaction ends: if two administrators remove each other
    /// concurrently, one stays.
    pub async fn has_other_admin(&mut self, org: OrgId, user: UserId) -> Result<bool, StoreError> {
        self.lock_org(org).await?;
        let other = "SELECT user_id FROM memberships
                     WHERE org_id = $1 AND role = 'admin' AND user_id <> $2 LIMIT 1";
        let row = sql(other).bind(org).bind(user).row(self).await?;
        Ok(row.is_some())
    }

    /// Updates the role of the membership if `version` is stored; returns the next version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn update_membership(
        &mut self,
        membership: Membership,
        version: i64,
    ) -> Result<i64, StoreError> {
        let Membership {
            org,
            user,
            role,
            created_at: _,
        } = membership;
        let update = "UPDATE memberships SET role = $1, version = version + 1
                      WHERE org_id = $2 AND user_id = $3 AND version = $4";
        let update = sql(update).bind(role.name()).bind(org).bind(user);
        update.write(self, version).await
    }

    /// Deletes the membership and the member's project roles if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn delete_membership(
        &mut self,
        org: OrgId,
        user: UserId,
        version: i64,
    ) -> Result<(), StoreError> {
        self.delete_project_roles(org, user).await?;
        let delete =
            sql("DELETE FROM memberships WHERE org_id = $1 AND user_id = $2 AND version = $3");
        delete.bind(org).bind(user).write(self, version).await?;
        Ok(())
    }
}

impl Record for Member {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let member = Self {
            membership: Membership {
                org: id(row, "org_id")?,
                user: id(row, "user_id")?,
                role: named(row, "role", Role::from_name)?,
                created_at: time(row, "created_at")?,
            },
            email: Email::stored(text(row, "email")?),
            name: Name::stored(text(row, "name")?),
            second_factor: optional_time(row, "confirmed_at")?.is_some(),
            last_sign_in_at: optional_time(row, "last_sign_in_at")?,
        };
        versioned(member, row)
    }
}
