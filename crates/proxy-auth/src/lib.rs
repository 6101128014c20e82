//! Credentials of requests. A [`UserTable`] compares [`BasicCredentials`] with the [`PasswordHash`]
//! of their user; a [`CredentialCache`] caches verified ones for a minute. [`TokenRules`] verify a
//! JSON Web Token with [`JwtKeys`].

mod basic;
mod cache;
mod htpasswd;
mod jwt;
mod password_hash;
mod users;

pub use basic::{BasicCredentials, is_user_name};
pub use cache::{CredentialCache, CredentialDigest};
pub use htpasswd::{HtpasswdError, read_htpasswd};
pub use jwt::{
    JwtAlgorithm, JwtKeys, KeyError, RemoteKeys, TokenClaims, TokenError, TokenRules, UnfitClaim,
};
pub use password_hash::{PasswordHash, PasswordHashError};
pub use users::UserTable;
