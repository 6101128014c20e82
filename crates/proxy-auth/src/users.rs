//! Users with the hashes of their passwords.

use crate::basic::BasicCredentials;
use crate::password_hash::PasswordHash;
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Users with the hashes of their passwords, at least one.
pub struct UserTable {
    users: HashMap<Box<str>, PasswordHash>,
    /// The hashes, sorted, for users that do not exist.
    decoys: Vec<PasswordHash>,
    /// Selects among them: as secret as the hashes, and the same on all workers.
    seed: u64,
}

impl UserTable {
    /// A table of `users`; the last one of a name counts.
    #[must_use]
    pub fn new(users: impl IntoIterator<Item = (String, PasswordHash)>) -> Self {
        let users = users.into_iter();
        let users: HashMap<Box<str>, _> = users
            .map(|(name, hash)| (name.into_boxed_str(), hash))
            .collect();
        let mut decoys: Vec<_> = users.values().cloned().collect();
        decoys.sort_unstable_by(|one, other| one.text().cmp(other.text()));
        let mut hasher = DefaultHasher::new();
        decoys.hash(&mut hasher);
        Self {
            users,
            seed: hasher.finish(),
            decoys,
        }
    }

    /// Memory that [`Self::verify`] takes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self, credentials: &BasicCredentials) -> u64 {
        let user = credentials.user();
        let hash = self.users.get(user).or_else(|| self.decoy(user));
        hash.map_or(0, PasswordHash::memory_bytes)
    }

    /// Returns true if the password is the user's. Blocks. For an unknown user it takes the time of
    /// one fixed user of the table: the time does not reveal which users exist.
    #[must_use]
    pub fn verify(&self, credentials: &BasicCredentials) -> bool {
        let password = credentials.password().as_bytes();
        if let Some(hash) = self.users.get(credentials.user()) {
            return hash.verify(password);
        }
        let decoy = self.decoy(credentials.user());
        decoy.is_some_and(|decoy| {
            // Compared for the time alone.
            std::hint::black_box(decoy.verify(password));
            false
        })
    }

    fn decoy(&self, user: &str) -> Option<&PasswordHash> {
        let mut hasher = DefaultHasher::new();
        (self.seed, user).hash(&mut hasher);
        let count = u64::try_from(self.decoys.len()).unwrap_or(u64::MAX);
        let index = hasher.finish().checked_rem(count)?;
        self.decoys.get(usize::try_from(index).unwrap_or_default())
    }
}

impl fmt::Debug for UserTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserTable({} users)", self.users.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    fn credentials(text: &str) -> BasicCredentials {
        let value = format!("Basic {}", STANDARD.encode(text));
        BasicCredentials::parse(value.as_bytes()).unwrap()
    }

    fn table() -> UserTable {
        let users = [("ann", "one"), ("bob", "two")];
        UserTable::new(users.map(|(name, password)| {
            let hash = bcrypt::hash(password, 4).unwrap();
            (name.to_owned(), hash.parse().unwrap())
        }))
    }

    #[test]
    fn each_user_has_a_password_of_its_own() {
        let table = table();
        for (text, is_right) in [
            ("ann:one", true),
            ("bob:two", true),
            ("ann:two", false),
            ("Ann:one", false),
            ("eve:one", false),
        ] {
            assert_eq!(table.verify(&credentials(text)), is_right, "{text}");
        }
    }

    #[test]
    fn an_unknown_user_takes_the_time_of_a_known_one() {
        let table = table();
        for user in ["eve", "mallory", ""] {
            let decoy = table.decoy(user).unwrap();
            assert_eq!(Some(decoy), table.decoy(user));
            assert!(table.users.values().any(|hash| hash == decoy));
        }
        assert!(UserTable::new([]).decoy("eve").is_none());
    }
}
