//! Passwords: Argon2id with the parameters that OWASP recommends.

use crate::error::AuthError;
use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc};
use std::fmt;
use zeroize::Zeroizing;

/// A hash of the same parameters that no known password has.
const UNKNOWN: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// A password in clear; wiped when dropped.
#[derive(Clone)]
pub struct Password(Zeroizing<String>);

/// A password's hash as a PHC string, `$argon2id$v=19$…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordHash(String);

impl Password {
    /// Takes the text, however long; [`Password::check`] has the rules for new ones.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text, for rules about it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Number of characters.
    pub fn length(&self) -> usize {
        self.0.chars().count()
    }

    /// Hashes with a random salt. Takes 20 to 100 ms of processor time and 19 MiB.
    ///
    /// # Errors
    ///
    /// [`AuthError::Malformed`] if the password is longer than 4 GiB.
    pub fn hash(&self, salt: [u8; 16]) -> Result<PasswordHash, AuthError> {
        let hash: Result<phc::PasswordHash, _> =
            Argon2::default().hash_password_with_salt(self.0.as_bytes(), &salt);
        hash.map(|hash| PasswordHash(hash.to_string()))
            .map_err(|_| AuthError::Malformed)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

impl PasswordHash {
    /// The hash as the database keeps it.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// For users that do not exist or have no password: no password matches, and finding that out takes as long.
    pub fn unknown() -> Self {
        Self(UNKNOWN.to_owned())
    }

    /// The PHC string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time. Takes as long as [`Password::hash`].
    ///
    /// # Errors
    ///
    /// [`AuthError::Malformed`] if the hash is no PHC string, else [`AuthError::Signature`].
    pub fn verify(&self, password: &Password) -> Result<(), AuthError> {
        let hash = phc::PasswordHash::new(&self.0).map_err(|_| AuthError::Malformed)?;
        Argon2::default()
            .verify_password(password.0.as_bytes(), &hash)
            .map_err(|_| AuthError::Signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_password_matches() {
        let password = Password::new("correct horse".to_owned());
        let hash = password.hash([3; 16]).unwrap();
        assert!(hash.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert_eq!(hash.verify(&password), Ok(()));
        let wrong = Password::new("correct horsf".to_owned());
        assert_eq!(hash.verify(&wrong), Err(AuthError::Signature));
        let unknown = PasswordHash::unknown();
        assert_eq!(unknown.verify(&password), Err(AuthError::Signature));
        let parameters = |hash: &str| hash.rsplitn(3, '$').last().unwrap().to_owned();
        assert_eq!(parameters(unknown.as_str()), parameters(hash.as_str()));
        let broken = PasswordHash::stored("$argon2id$".to_owned());
        assert_eq!(broken.verify(&password), Err(AuthError::Malformed));
    }
}
