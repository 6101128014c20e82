//! A user: a person with an account.

use crate::access::Access;
use crate::actor::Actor;
use crate::refusal::Refusal;
use crate::text::{Email, Name};
use control_auth::{Password, PasswordHash};
use control_wire::UserId;
use jiff::Timestamp;

const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 12..=256;

/// A user of the installation; memberships say in which organizations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The identifier.
    pub id: UserId,
    /// The address to sign in with, unique in the installation.
    pub email: Email,
    /// The name to show.
    pub name: Name,
    /// Absent for users of an external identity provider.
    pub password: Option<PasswordHash>,
    /// Whether the user administers the whole installation.
    pub instance_admin: bool,
    /// When the user was created.
    pub created_at: Timestamp,
}

/// What is known of a new user.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// The address to sign in with.
    pub email: String,
    /// The name to show.
    pub name: String,
    /// 12 to 256 characters.
    pub password: Password,
}

impl NewUser {
    /// Checks all fields before the password is hashed, which is slow.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] for the first bad field.
    pub fn check(&self) -> Result<(), Refusal> {
        Email::parse("email", &self.email)?;
        Name::parse("user_name", &self.name)?;
        if !PASSWORD_CHARS.contains(&self.password.length()) {
            return Err(Refusal::invalid("password", "needs 12 to 256 characters"));
        }
        Ok(())
    }
}

impl User {
    /// The user of an accepted invitation. `hash` is of the password.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for any other actor, or a bad field.
    pub fn join(
        actor: &Actor,
        id: UserId,
        new: &NewUser,
        hash: PasswordHash,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.holds(Access::Invitee)?;
        Self::create(id, new, hash, false, now)
    }

    /// The first administrator, made at set-up or on the command line. `hash` is of the password.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for any other actor, or a bad field.
    pub fn create_admin(
        actor: &Actor,
        id: UserId,
        new: &NewUser,
        hash: PasswordHash,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor
            .holds(Access::SetUp)
            .or_else(|_| actor.holds(Access::System))?;
        Self::create(id, new, hash, true, now)
    }

    /// A user of an identity provider, without a password.
    pub fn provision(id: UserId, email: Email, name: Name, now: Timestamp) -> Self {
        Self {
            id,
            email,
            name,
            password: None,
            instance_admin: false,
            created_at: now,
        }
    }

    fn create(
        id: UserId,
        new: &NewUser,
        hash: PasswordHash,
        instance_admin: bool,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        new.check()?;
        Ok(Self {
            id,
            email: Email::parse("email", &new.email)?,
            name: Name::parse("user_name", &new.name)?,
            password: Some(hash),
            instance_admin,
            created_at: now,
        })
    }
}
