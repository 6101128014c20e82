//! Users.

use crate::error::StoreError;
use crate::row::{id, optional_text, text, time, truth, versioned};
use crate::statement::{Write, sql};
use crate::store::Transaction;
use crate::versioned::Versioned;
use control_auth::PasswordHash;
use control_domain::{Email, Name, User};
use control_wire::UserId;
use sqlx::any::AnyRow;
use sqlx::query;

impl Transaction {
    /// Inserts a new user.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the address is taken.
    pub async fn insert_user(&mut self, user: &User) -> Result<(), StoreError> {
        let User {
            id,
            email,
            name,
            password,
            instance_admin,
            created_at,
        } = user;
        let sql = "INSERT INTO users (id, email, name, password_hash, instance_admin, created_at,
                   version) VALUES ($1, $2, $3, $4, $5, $6, 1)";
        query(sql)
            .bind(id.to_string())
            .bind(email.as_str())
            .bind(name.as_str())
            .bind(password.as_ref().map(PasswordHash::as_str))
            .bind(i64::from(*instance_admin))
            .bind(created_at.as_millisecond())
            .write_in(self)
            .await?;
        Ok(())
    }

    /// Updates name and password of the user if `version` is stored; returns the next version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn update_user(&mut self, user: &User, version: i64) -> Result<i64, StoreError> {
        let update = "UPDATE users SET name = $1, password_hash = $2, version = version + 1
                      WHERE id = $3 AND version = $4";
        let update = sql(update).bind(&user.name);
        let update = update.bind(user.password.as_ref().map(PasswordHash::as_str));
        update.bind(user.id).write(self, version).await
    }

    /// Returns true if the user still has this password, and locks it until this transaction ends.
    /// A concurrent sign-in by an old password then either fails here, or the password change ends
    /// its session.
    pub async fn lock_password(
        &mut self,
        user: UserId,
        password: &PasswordHash,
    ) -> Result<bool, StoreError> {
        // Changes no value: the statement makes PostgreSQL lock the row, and SQLite has a single
        // writer.
        let lock = "UPDATE users SET version = version WHERE id = $1 AND password_hash = $2";
        let lock = sql(lock).bind(user).bind(password.as_str());
        Ok(0 < lock.run(self).await?)
    }

    /// Names of the user's organizations, at most 20.
    pub async fn org_names_of_user(&mut self, user: UserId) -> Result<Vec<Name>, StoreError> {
        let names = "SELECT o.name AS name FROM orgs o JOIN memberships m ON m.org_id = o.id
                     WHERE m.user_id = $1 ORDER BY o.id LIMIT 20";
        let rows = sql(names).bind(user).rows(self).await?;
        rows.iter()
            .map(|row| Ok(Name::stored(text(row, "name")?)))
            .collect()
    }

    /// The user with its version; `None` if it does not exist.
    pub async fn user(&mut self, user: UserId) -> Result<Option<Versioned<User>>, StoreError> {
        let sql = "SELECT id, email, name, password_hash, instance_admin, created_at, version
                   FROM users WHERE id = $1";
        let row = query(sql)
            .bind(user.to_string())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// The user with this sign-in address.
    pub async fn user_by_email(
        &mut self,
        email: &Email,
    ) -> Result<Option<Versioned<User>>, StoreError> {
        let sql = "SELECT id, email, name, password_hash, instance_admin, created_at, version
                   FROM users WHERE email = $1";
        let row = query(sql)
            .bind(email.as_str())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// Returns true if no user exists: the installation is not set up.
    pub async fn has_no_users(&mut self) -> Result<bool, StoreError> {
        let row = query("SELECT id FROM users LIMIT 1")
            .fetch_optional(self.connection())
            .await?;
        Ok(row.is_none())
    }
}

fn read(row: &AnyRow) -> Result<Versioned<User>, StoreError> {
    let user = User {
        id: id(row, "id")?,
        email: Email::stored(text(row, "email")?),
        name: Name::stored(text(row, "name")?),
        password: optional_text(row, "password_hash")?.map(PasswordHash::stored),
        instance_admin: truth(row, "instance_admin")?,
        created_at: time(row, "created_at")?,
    };
    versioned(user, row)
}
