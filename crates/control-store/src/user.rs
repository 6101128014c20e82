//! Users.

use crate::error::StoreError;
use crate::row::{id, optional_text, text, time, truth, versioned};
use crate::statement::Write;
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

    /// The user, if there is one.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
    pub async fn user(&mut self, user: UserId) -> Result<Option<Versioned<User>>, StoreError> {
        let sql = "SELECT id, email, name, password_hash, instance_admin, created_at, version
                   FROM users WHERE id = $1";
        let row = query(sql)
            .bind(user.to_string())
            .fetch_optional(self.connection())
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// The user with this sign-in address, if there is one.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
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

    /// Whether the installation has not been set up yet.
    ///
    /// # Errors
    ///
    /// [`StoreError`]
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
