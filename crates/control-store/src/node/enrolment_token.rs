//! Enrolment tokens.

use crate::error::StoreError;
use crate::node::to_json;
use crate::row::{creator, id, json, number, optional_time, text, time, versioned};
use crate::statement::list::{ListQuery, SortColumns};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{ListFilter, Page, SortColumn, Versioned};
use control_domain::{EnrolmentToken, Labels, Name, Tenant};
use control_wire::{EnrolmentTokenId, ProjectId};
use jiff::Timestamp;
use sqlx::any::AnyRow;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, org_id, project_id, name, max_uses, uses, labels, created_at, expires_at,
             revoked_at, made_by, (SELECT m.role FROM memberships m
               WHERE m.org_id = enrolment_tokens.org_id AND m.user_id = enrolment_tokens.made_by) AS maker_role,
             (SELECT r.role FROM project_roles r WHERE r.project_id = enrolment_tokens.project_id
               AND r.user_id = enrolment_tokens.made_by) AS maker_project_role, version
             FROM enrolment_tokens ",
            $rest
        )
    };
}

/// Columns that the list can be sorted by.
const SORTED: SortColumns = SortColumns {
    id: "id",
    columns: &[
        (SortColumn::Name, "name"),
        (SortColumn::ExpiresAt, "expires_at"),
    ],
};

impl Transaction {
    /// Inserts a new token under the hash of its secret.
    pub async fn insert_enrolment_token(
        &mut self,
        token: &EnrolmentToken,
        secret_hash: &str,
    ) -> Result<(), StoreError> {
        let EnrolmentToken {
            id,
            tenant: Tenant { org, project },
            name,
            max_uses,
            uses,
            labels,
            created_at,
            expires_at,
            revoked_at,
            made_by,
        } = token;
        let insert = "INSERT INTO enrolment_tokens (id, org_id, project_id, name, secret_hash,
                      max_uses, uses, created_at, expires_at, revoked_at, made_by, labels, version)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 1)";
        sql(insert)
            .bind(*id)
            .bind(*org)
            .bind(*project)
            .bind(name)
            .bind(secret_hash)
            .bind(*max_uses)
            .bind(*uses)
            .bind(*created_at)
            .bind(*expires_at)
            .bind(*revoked_at)
            .bind(made_by.map(|creator| creator.user))
            .bind(to_json(labels.pairs())?)
            .run(self)
            .await?;
        Ok(())
    }

    /// The token, if it exists.
    pub async fn enrolment_token(
        &mut self,
        token: EnrolmentTokenId,
    ) -> Result<Option<Versioned<EnrolmentToken>>, StoreError> {
        sql(select!("WHERE id = $1")).bind(token).one(self).await
    }

    /// The token with this hash of its secret, if there is one.
    pub async fn enrolment_token_by_secret(
        &mut self,
        secret_hash: &str,
    ) -> Result<Option<Versioned<EnrolmentToken>>, StoreError> {
        let by_secret = sql(select!("WHERE secret_hash = $1"));
        by_secret.bind(secret_hash).one(self).await
    }

    /// The tokens of a project.
    pub async fn enrolment_tokens(
        &mut self,
        project: ProjectId,
        filter: &ListFilter,
        page: Page,
    ) -> Result<Vec<Versioned<EnrolmentToken>>, StoreError> {
        let ListFilter { name, sort } = filter;
        let list =
            ListQuery::new(select!("WHERE project_id = ?"), project).named("name", name.as_deref());
        let sort = sort.as_ref();
        list.sorted(self, &SORTED, sort, page).await
    }

    /// Returns true if another token of the project, which can still register nodes at `now`, has
    /// the token's name. The caller must hold the writers' lock.
    pub async fn is_enrolment_token_name_taken(
        &mut self,
        token: &EnrolmentToken,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let other = "SELECT id FROM enrolment_tokens
                     WHERE project_id = $1 AND name = $2 AND id <> $3
                       AND revoked_at IS NULL AND expires_at > $4 AND uses < max_uses LIMIT 1";
        let other = sql(other).bind(token.tenant.project).bind(&token.name);
        let row = other.bind(token.id).bind(now).row(self).await?;
        Ok(row.is_some())
    }

    /// Counts one more registration; returns false if the token permits none at `now`.
    pub async fn use_enrolment_token(
        &mut self,
        token: EnrolmentTokenId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE enrolment_tokens SET uses = uses + 1, version = version + 1
                      WHERE id = $1 AND uses < max_uses AND revoked_at IS NULL
                        AND expires_at > $2";
        Ok(sql(update).bind(token).bind(now).run(self).await? == 1)
    }

    /// Updates the token if `version` is stored; returns the next version. Only name and revocation
    /// change here.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn update_enrolment_token(
        &mut self,
        token: &EnrolmentToken,
        version: i64,
    ) -> Result<i64, StoreError> {
        let update = "UPDATE enrolment_tokens SET revoked_at = $1, name = $2,
                        version = version + 1 WHERE id = $3 AND version = $4";
        let update = sql(update).bind(token.revoked_at);
        let update = update.bind(&token.name).bind(token.id);
        update.write(self, version).await
    }
}

impl Record for EnrolmentToken {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let token = Self {
            id: id(row, "id")?,
            tenant: Tenant::project(id(row, "org_id")?, id(row, "project_id")?),
            name: Name::stored(text(row, "name")?),
            max_uses: number(row, "max_uses")?,
            uses: number(row, "uses")?,
            labels: Labels::stored(json(row, "labels")?),
            created_at: time(row, "created_at")?,
            expires_at: time(row, "expires_at")?,
            revoked_at: optional_time(row, "revoked_at")?,
            made_by: creator(row)?,
        };
        versioned(token, row)
    }
}
