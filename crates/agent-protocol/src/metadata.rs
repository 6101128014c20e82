//! Metadata of agents: for the log, and for later agents of the route.

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum of entries.
pub const MAX_METADATA_ENTRIES: usize = 32;
/// Maximum bytes of a key.
pub const MAX_METADATA_KEY_BYTES: usize = 64;
/// Maximum bytes of a value.
pub const MAX_METADATA_VALUE_BYTES: usize = 1024;

/// Metadata of the agents that decided before, by the agents' names.
pub type MetadataByAgent = BTreeMap<String, Metadata>;

/// Text by key. A key is of letters, digits, `_`, `-` and `.`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Metadata(BTreeMap<String, String>);

impl Metadata {
    /// Adds or replaces an entry; `false`, without a change, if a bound forbids it.
    pub fn insert(&mut self, key: &str, value: &str) -> bool {
        let has_room = self.0.len() < MAX_METADATA_ENTRIES || self.0.contains_key(key);
        let fits = has_room && is_key(key) && value.len() <= MAX_METADATA_VALUE_BYTES;
        if fits {
            self.0.insert(key.to_owned(), value.to_owned());
        }
        fits
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All entries, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

fn is_key(key: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !key.is_empty() && key.len() <= MAX_METADATA_KEY_BYTES && key.bytes().all(is_plain)
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataVisitor)
    }
}

struct MetadataVisitor;

impl<'de> Visitor<'de> for MetadataVisitor {
    type Value = Metadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Metadata, A::Error> {
        let mut metadata = Metadata::default();
        while let Some((key, value)) = entries.next_entry::<String, String>()? {
            if metadata.get(&key).is_some() {
                return Err(A::Error::custom("a key of metadata twice"));
            }
            if !metadata.insert(&key, &value) {
                return Err(A::Error::custom("metadata beyond its bounds"));
            }
        }
        Ok(metadata)
    }
}
