//! A user: the account of a person.

use crate::access::Access;
use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::refusal::faults::Faults;
use crate::text::{Email, Name};
use control_auth::{Password, PasswordHash};
use control_wire::UserId;
use jiff::Timestamp;

/// A user of the installation; memberships connect it to organizations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// UUID of version 7.
    pub id: UserId,
    /// Address to sign in with, unique in the installation.
    pub email: Email,
    /// Display name.
    pub name: Name,
    /// Password hash; `None` for users that sign in through an identity provider.
    pub password: Option<PasswordHash>,
    /// True if the user administers the whole installation.
    pub instance_admin: bool,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Input for a new user.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// The address to sign in with.
    pub email: String,
    /// Display name.
    pub name: String,
    /// 12 to 256 characters.
    pub password: Password,
}

impl NewUser {
    /// Checks all fields before the slow hashing of the password; `org_name` is the organization to
    /// join.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] or [`Refusal::InvalidFields`] for bad fields.
    pub fn check(&self, org_name: &str) -> Result<(), Refusal> {
        let mut faults = Faults::default();
        let email = faults.record(Email::parse("email", &self.email));
        let name = faults.record(Name::parse("user_name", &self.name));
        let known = [self.email.as_str(), self.name.as_str(), org_name];
        let checked = faults.record(check_password(&self.password, &known));
        faults.finish(email.and(name).and(checked))
    }
}

/// Checks a new password: it must not be derived from the `known` words, which describe the user.
fn check_password(password: &Password, known: &[&str]) -> Result<(), Refusal> {
    let checked = password.check(known);
    checked.map_err(|fault| Refusal::invalid("password", fault.reason()))
}

impl User {
    /// The user with another name.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for any other actor, or for a bad name.
    pub fn rename(self, actor: &Actor, name: &str) -> Result<Self, Refusal> {
        actor.holds(Access::Session)?;
        let name = Name::parse("name", name)?;
        Ok(Self { name, ..self })
    }

    /// Checks that the user may set this password; `orgs` are the names of the user's
    /// organizations.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] with the violated rule.
    pub fn check_password(&self, password: &Password, orgs: &[Name]) -> Result<(), Refusal> {
        let own = [self.email.as_str(), self.name.as_str()];
        let orgs = orgs.iter().map(Name::as_str);
        let known: Vec<&str> = own.into_iter().chain(orgs).collect();
        check_password(password, &known)
    }

    /// Creates the user of an accepted invitation; `hash` is the password's.
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

    /// Creates the first administrator, at set-up or on the command line; `hash` is the password's.
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

    /// Creates a user without a password, for an identity provider.
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
