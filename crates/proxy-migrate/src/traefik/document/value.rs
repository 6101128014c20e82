//! Tree of a document.

use crate::migrated::Place;
use std::rc::Rc;

/// A value in a document.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(super) file: Rc<str>,
    /// Line, from 1.
    pub(super) line: u32,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    /// Text of a string, number or flag; empty for null.
    Text(String),
    List(Vec<Value>),
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(super) line: u32,
}

impl Value {
    /// Value of a key, compared case-insensitively as Traefik does for its own keys.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let mut entries = self.entries().iter();
        let found = entries.find(|entry| entry.key.eq_ignore_ascii_case(key));
        found.map(|entry| &entry.value)
    }

    /// Value at a path of keys.
    pub(crate) fn at(&self, keys: &[&str]) -> Option<&Self> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Entries of a map; empty for other values.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Map(entries) => entries,
            Content::Text(_) | Content::List(_) => &[],
        }
    }

    /// Items of a list; empty for other values.
    pub(crate) fn items(&self) -> &[Self] {
        match &self.content {
            Content::List(items) => items,
            Content::Text(_) | Content::Map(_) => &[],
        }
    }

    /// Text, unless it is empty.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text.as_str()).filter(|text| !text.is_empty()),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    /// Text of a key.
    pub(crate) fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key)?.text()
    }

    /// Texts of a key's list, or of its text with commas.
    pub(crate) fn texts_of(&self, key: &str) -> Vec<&str> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        match value.text() {
            Some(text) => {
                let parts = text.split(',').map(str::trim);
                parts.filter(|part| !part.is_empty()).collect()
            }
            None => value.items().iter().filter_map(Self::text).collect(),
        }
    }

    pub(crate) fn number_of(&self, key: &str) -> Option<u64> {
        self.text_of(key)?.parse().ok()
    }

    /// Block of a key, unless it is disabled.
    pub(crate) fn block(&self, key: &str) -> Option<&Self> {
        self.get(key).filter(|block| block.text() != Some("false"))
    }

    /// Returns true if a key's flag is enabled.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        self.text_of(key)
            .is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    /// Returns true for null, an empty list or an empty map.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.content {
            Content::Text(text) => text.is_empty(),
            Content::List(items) => items.is_empty(),
            Content::Map(entries) => entries.is_empty(),
        }
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            file: self.file.to_string(),
            line: self.line,
        }
    }
}

impl Entry {
    pub(crate) fn place(&self) -> Place {
        Place {
            file: self.value.file.to_string(),
            line: self.line,
        }
    }
}
