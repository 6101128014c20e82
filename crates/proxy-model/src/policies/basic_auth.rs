//! Users and passwords. [RFC 7617]

use super::request_rate::RequestRate;
use crate::place::{Place, Setting};
use proxy_auth::PasswordHash;
use std::fmt;
use std::path::PathBuf;

/// The users that may use a route.
#[derive(Clone, Debug)]
pub struct BasicAuth {
    /// Place of the block.
    pub place: Place,
    /// The name that browsers show.
    pub realm: Setting<String>,
    /// Users in the configuration.
    pub users: Vec<Setting<BasicUser>>,
    /// Users in files; with those in the configuration at least one.
    pub users_files: Vec<Setting<UsersFile>>,
    /// Number of wrong passwords per client and period, before further ones are delayed.
    pub attempts: Setting<RequestRate>,
    /// True if the upstream gets the credentials.
    pub forward_credentials: Setting<bool>,
}

/// A user with the hash of its password.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BasicUser {
    /// The name: not empty, without a colon.
    pub name: String,
    /// The hash of the password.
    pub hash: PasswordHash,
}

/// A file of users as `htpasswd` writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UsersFile {
    /// Path, absolute or relative to the file that names it.
    pub path: PathBuf,
    /// The file's users at the time of loading.
    pub users: Vec<BasicUser>,
}

impl fmt::Display for BasicUser {
    /// The name, without the hash.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
