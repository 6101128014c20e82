//! Passwords: Argon2id with the parameters that OWASP recommends.

use crate::error::AuthError;
use argon2::password_hash::phc;
use argon2::{Algorithm, Argon2, Block, Params, Version};
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

/// Working memory of Argon2, 19 MiB, for one password after another. Freed after each password, it would stay in the
/// allocator's arenas, once for each thread.
pub struct PasswordMemory(Vec<Block>);

impl Default for PasswordMemory {
    fn default() -> Self {
        Self(vec![Block::new(); Params::DEFAULT.block_count()])
    }
}

impl fmt::Debug for PasswordMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordMemory(…)")
    }
}

impl PasswordMemory {
    /// The hash of `text`, of the length in `params`, or of 32 bytes.
    fn hash(
        &mut self,
        argon2: &Argon2<'_>,
        params: &Params,
        text: &str,
        salt: &[u8],
    ) -> Result<phc::Output, AuthError> {
        let count = params.block_count();
        if self.0.len() < count {
            self.0.resize(count, Block::new());
        }
        let blocks = self.0.get_mut(..count).ok_or(AuthError::Malformed)?;
        let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        let mut bytes = [0; phc::Output::MAX_LENGTH];
        let bytes = bytes.get_mut(..length).ok_or(AuthError::Malformed)?;
        argon2
            .hash_password_into_with_memory(text.as_bytes(), salt, bytes, blocks)
            .map_err(|_| AuthError::Malformed)?;
        phc::Output::new(bytes).map_err(|_| AuthError::Malformed)
    }
}

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
        self.hash_in(&mut PasswordMemory::default(), salt)
    }

    /// Hashes in memory that is allocated already.
    ///
    /// # Errors
    ///
    /// As [`Password::hash`].
    pub fn hash_in(
        &self,
        memory: &mut PasswordMemory,
        salt: [u8; 16],
    ) -> Result<PasswordHash, AuthError> {
        let (algorithm, version) = (Algorithm::default(), Version::default());
        let params = Params::DEFAULT;
        let argon2 = Argon2::new(algorithm, version, params.clone());
        let output = memory.hash(&argon2, &params, self.0.as_str(), &salt)?;
        let hash = phc::PasswordHash {
            algorithm: algorithm.ident(),
            version: Some(version.into()),
            params: (&params).try_into().map_err(|_| AuthError::Malformed)?,
            salt: Some(phc::Salt::new(&salt).map_err(|_| AuthError::Malformed)?),
            hash: Some(output),
        };
        Ok(PasswordHash(hash.to_string()))
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

impl PasswordHash {
    /// A stored hash.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// For users that do not exist or have no password: no password matches, and finding that out takes as long.
    pub fn unknown() -> Self {
        Self(UNKNOWN.to_owned())
    }

    /// Hash with its parameters, in the PHC format.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time. Takes as long as [`Password::hash`].
    ///
    /// # Errors
    ///
    /// [`AuthError::Malformed`] if the hash is not a PHC string, else [`AuthError::Signature`].
    pub fn verify(&self, password: &Password) -> Result<(), AuthError> {
        self.verify_in(&mut PasswordMemory::default(), password)
    }

    /// The same in memory that is there.
    ///
    /// # Errors
    ///
    /// As [`PasswordHash::verify`].
    pub fn verify_in(
        &self,
        memory: &mut PasswordMemory,
        password: &Password,
    ) -> Result<(), AuthError> {
        let hash = phc::PasswordHash::new(&self.0).map_err(|_| AuthError::Malformed)?;
        let (Some(salt), Some(expected)) = (&hash.salt, &hash.hash) else {
            return Err(AuthError::Malformed);
        };
        let algorithm = Algorithm::new(hash.algorithm).map_err(|_| AuthError::Malformed)?;
        let version = hash
            .version
            .map_or(Ok(Version::default()), Version::try_from);
        let version = version.map_err(|_| AuthError::Malformed)?;
        let params = Params::try_from(&hash).map_err(|_| AuthError::Malformed)?;
        let argon2 = Argon2::new(algorithm, version, params.clone());
        let found = memory.hash(&argon2, &params, password.0.as_str(), salt.as_ref())?;
        // Compared in constant time.
        (found == *expected)
            .then_some(())
            .ok_or(AuthError::Signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `echo -n password | argon2 somesalt -id -t 2 -m 8 -p 1 -e`
    #[test]
    fn a_hash_of_another_program_is_verified() {
        let hash =
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        let hash = PasswordHash::stored(hash.to_owned());
        assert_eq!(hash.verify(&Password::new("password".to_owned())), Ok(()));
        let wrong = hash.verify(&Password::new("passwore".to_owned()));
        assert_eq!(wrong, Err(AuthError::Signature));
    }

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
        let other = Password::new("another password".to_owned());
        let memory = &mut PasswordMemory::default();
        assert_eq!(password.hash_in(memory, [3; 16]).unwrap(), hash);
        assert_eq!(hash.verify_in(memory, &other), Err(AuthError::Signature));
        // The blocks of the password before do not count.
        assert_eq!(hash.verify_in(memory, &password), Ok(()));
        assert_eq!(password.hash_in(memory, [3; 16]).unwrap(), hash);
        let broken = PasswordHash::stored("$argon2id$".to_owned());
        assert_eq!(broken.verify(&password), Err(AuthError::Malformed));
    }
}
