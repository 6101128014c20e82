//! Hashes of passwords: bcrypt and Argon2.

use argon2::password_hash::{PasswordVerifier, phc};
use argon2::{Argon2, Params, Version};
use std::fmt;
use std::str::FromStr;

/// Length of a bcrypt hash: version, cost, salt and digest.
const BCRYPT_BYTES: usize = 60;
/// Maximum cost of bcrypt, about two seconds.
const MAX_BCRYPT_COST: u32 = 15;
/// Maximum memory of one Argon2 hash, in KiB.
const MAX_ARGON2_KIB: u32 = 256 << 10;
/// Maximum number of passes of Argon2 over its memory.
const MAX_ARGON2_PASSES: u32 = 16;
/// Maximum number of lanes of Argon2.
const MAX_ARGON2_LANES: u32 = 16;

/// The hash of a password. `Debug` leaves it out.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PasswordHash(Scheme);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Scheme {
    Bcrypt(Box<str>),
    Argon2(Box<str>),
}

/// The reason why a text is not taken as the hash of a password. It never contains the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordHashError {
    /// It is in no known format of hashes: probably a password.
    #[error("this is not a hash of bcrypt or Argon2, and perhaps a password in clear")]
    Clear,
    /// SHA-1, with or without a salt.
    #[error("SHA-1 hashes can be tried billions of times a second")]
    Sha1,
    /// MD5 in the forms of Apache and of Unix.
    #[error("MD5 is broken, and its hashes are cheap to try")]
    Md5,
    /// SHA-256 or SHA-512 in the form of Unix.
    #[error("hashes of `crypt` other than bcrypt are not supported")]
    Crypt,
    /// Malformed, or of an unknown version.
    #[error("the hash is malformed")]
    Malformed,
    /// Comparing takes too much time or memory.
    #[error(
        "the hash is too costly: bcrypt up to 15, Argon2 up to 256 MiB, 16 passes and 16 lanes"
    )]
    TooCostly,
}

impl PasswordHash {
    /// The hash as written.
    pub(crate) fn text(&self) -> &str {
        match &self.0 {
            Scheme::Bcrypt(text) | Scheme::Argon2(text) => text,
        }
    }

    /// Memory that [`Self::verify`] takes, in bytes; 0 for bcrypt, which takes a few kibibytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let Scheme::Argon2(text) = &self.0 else {
            return 0;
        };
        let hash = phc::PasswordHash::new(text);
        let costs = hash.ok().and_then(|hash| Params::try_from(&hash).ok());
        costs.map_or(0, |costs| u64::from(costs.m_cost()) << 10)
    }

    /// Compares in constant time. Blocks for as long as the hash costs.
    #[must_use]
    pub fn verify(&self, password: &[u8]) -> bool {
        match &self.0 {
            Scheme::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Scheme::Argon2(hash) => {
                let hash = phc::PasswordHash::new(hash);
                hash.is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok())
            }
        }
    }
}

impl FromStr for PasswordHash {
    type Err = PasswordHashError;

    fn from_str(text: &str) -> Result<Self, PasswordHashError> {
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
        if begins(&["$2a$", "$2b$", "$2y$"]) {
            check_bcrypt(text)?;
            return Ok(Self(Scheme::Bcrypt(text.into())));
        }
        if begins(&["$argon2id$", "$argon2i$", "$argon2d$"]) {
            check_argon2(text)?;
            return Ok(Self(Scheme::Argon2(text.into())));
        }
        Err(if begins(&["{SHA}", "{SSHA}"]) {
            PasswordHashError::Sha1
        } else if begins(&["$apr1$", "$1$"]) {
            PasswordHashError::Md5
        } else if begins(&["$5$", "$6$", "$y$", "$7$"]) {
            PasswordHashError::Crypt
        } else if begins(&["$2", "$argon2"]) {
            PasswordHashError::Malformed
        } else {
            PasswordHashError::Clear
        })
    }
}

fn check_bcrypt(text: &str) -> Result<(), PasswordHashError> {
    let malformed = PasswordHashError::Malformed;
    let (cost, rest) = text
        .get(4..)
        .and_then(|rest| rest.split_once('$'))
        .ok_or(malformed)?;
    let is_digest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/');
    let is_whole = text.len() == BCRYPT_BYTES && cost.len() == 2 && rest.bytes().all(is_digest);
    let cost: u32 = cost.parse().map_err(|_| malformed)?;
    match cost {
        _ if !is_whole => Err(malformed),
        ..4 => Err(malformed),
        4..=MAX_BCRYPT_COST => Ok(()),
        _ => Err(PasswordHashError::TooCostly),
    }
}

fn check_argon2(text: &str) -> Result<(), PasswordHashError> {
    let malformed = PasswordHashError::Malformed;
    let hash = phc::PasswordHash::new(text).map_err(|_| malformed)?;
    if hash.salt.is_none() || hash.hash.is_none() {
        return Err(malformed);
    }
    // An unknown version never matches, and defaults for missing parameters would be guesses.
    let is_known = hash
        .version
        .is_some_and(|version| Version::try_from(version).is_ok());
    let is_given =
        |name: &str| text.contains(&format!("${name}=")) || text.contains(&format!(",{name}="));
    if !is_known || !["m", "t", "p"].into_iter().all(is_given) {
        return Err(malformed);
    }
    let costs = Params::try_from(&hash).map_err(|_| malformed)?;
    let is_costly = MAX_ARGON2_KIB < costs.m_cost()
        || MAX_ARGON2_PASSES < costs.t_cost()
        || MAX_ARGON2_LANES < costs.p_cost();
    if is_costly {
        return Err(PasswordHashError::TooCostly);
    }
    Ok(())
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argon2::password_hash::PasswordHasher;

    #[test]
    fn only_the_same_password_matches() {
        let bcrypt = bcrypt::hash("secret", 4).unwrap();
        let costs = Params::new(8, 1, 1, None).unwrap();
        let argon2: phc::PasswordHash = Argon2::from(costs)
            .hash_password_with_salt(b"secret", &[3; 16])
            .unwrap();
        for text in [
            bcrypt.clone(),
            bcrypt.replacen("$2b$", "$2y$", 1),
            argon2.to_string(),
        ] {
            let hash: PasswordHash = text.parse().unwrap();
            assert!(hash.verify(b"secret"), "{text}");
            assert!(!hash.verify(b"Secret"), "{text}");
            assert!(!hash.verify(b""), "{text}");
            let bytes = if text.contains("argon2") { 8_192 } else { 0 };
            assert_eq!(hash.memory_bytes(), bytes, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_their_reason() {
        use PasswordHashError::{Clear, Crypt, Malformed, Md5, Sha1, TooCostly};
        let digest = "a".repeat(53);
        let argon2 = |costs: &str| {
            format!(
                "$argon2id$v=19${costs}$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
            )
        };
        for (text, error) in [
            (String::new(), Clear),
            ("secret".to_owned(), Clear),
            ("rqXexS6ZhobKA".to_owned(), Clear),
            ("{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=".to_owned(), Sha1),
            ("$apr1$a$b".to_owned(), Md5),
            ("$1$a$b".to_owned(), Md5),
            ("$6$a$b".to_owned(), Crypt),
            ("$2x$10$".to_owned() + &digest, Malformed),
            ("$2y$10$".to_owned() + &digest[1..], Malformed),
            ("$2y$03$".to_owned() + &digest, Malformed),
            ("$2y$16$".to_owned() + &digest, TooCostly),
            ("$argon2id$".to_owned(), Malformed),
            (argon2("m=1000000,t=2,p=1"), TooCostly),
            (argon2("m=19456,t=17,p=1"), TooCostly),
            (argon2("t=2,p=1"), Malformed),
            (argon2("m=19456,t=2"), Malformed),
            (argon2("m=19456,t=2,p=1").replace("v=19", "v=99"), Malformed),
            (argon2("m=19456,t=2,p=1").replace("v=19$", ""), Malformed),
        ] {
            assert_eq!(text.parse::<PasswordHash>(), Err(error), "{text}");
        }
        assert!(argon2("m=19456,t=2,p=1").parse::<PasswordHash>().is_ok());
    }
}
