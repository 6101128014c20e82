//! Labels of nodes, as name and value.

mod selector;

use crate::access::refusal::Refusal;
pub use selector::{LabelCondition, LabelSelector};
use std::collections::BTreeMap;

const MAX_LABELS: usize = 32;
const NAME_BYTES: usize = 63;
const VALUE_BYTES: usize = 128;
const NAME_REASON: &str = "have a name that is not 1 to 63 characters of [a-z0-9._/-]";

/// Labels: at most 32 pairs. Names have 1 to 63 characters of `[a-z0-9._/-]`, values up to 128
/// visible ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// Validates labels.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] for too many labels, or a malformed name or value.
    pub fn parse(pairs: BTreeMap<String, String>) -> Result<Self, Refusal> {
        if MAX_LABELS < pairs.len() {
            return Err(Refusal::invalid("labels", "are more than 32"));
        }
        for (name, value) in &pairs {
            if !is_name(name) {
                return Err(Refusal::invalid("labels", NAME_REASON));
            }
            let visible = |c: char| c.is_ascii_graphic();
            if VALUE_BYTES < value.len() || !value.chars().all(visible) {
                let reason = "have a value that is not up to 128 visible ASCII characters";
                return Err(Refusal::invalid("labels", reason));
            }
        }
        Ok(Self(pairs))
    }

    /// Applies changes: a value is set, `None` removes the label (JSON Merge Patch, RFC 7386).
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] for too many labels, or a malformed name or value.
    pub fn merge(self, changes: BTreeMap<String, Option<String>>) -> Result<Self, Refusal> {
        let Self(mut pairs) = self;
        if !changes.keys().all(|name| is_name(name)) {
            return Err(Refusal::invalid("labels", NAME_REASON));
        }
        for (name, value) in changes {
            match value {
                Some(value) => pairs.insert(name, value),
                None => pairs.remove(&name),
            };
        }
        Self::parse(pairs)
    }

    /// Labels read from the database, not validated again.
    pub fn stored(pairs: BTreeMap<String, String>) -> Self {
        Self(pairs)
    }

    /// Returns true if the labels include all of `wanted`.
    #[must_use]
    pub fn contain(&self, wanted: &Self) -> bool {
        let Self(wanted) = wanted;
        wanted
            .iter()
            .all(|(name, value)| self.0.get(name) == Some(value))
    }

    /// Returns true if there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Name and value of each label, sorted by name.
    pub fn pairs(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| plain(byte) || matches!(byte, b'.' | b'_' | b'/' | b'-');
    (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(name: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn a_label_has_a_plain_name_and_a_visible_value() {
        for (name, value) in [("zone", "eu-1"), ("a.b/c_d-1", ""), (&"n".repeat(63), "x")] {
            assert!(Labels::parse(pairs(name, value)).is_ok(), "{name}={value}");
        }
        let long = "v".repeat(129);
        for (name, value) in [
            ("", "x"),
            ("Zone", "x"),
            ("a b", "x"),
            ("a=b", "x"),
            (&"n".repeat(64), "x"),
            ("zone", "a b"),
            ("zone", "\n"),
            ("zone", "ü"),
            ("zone", &long),
        ] {
            assert!(Labels::parse(pairs(name, value)).is_err(), "{name}={value}");
        }
        let many = (0..33).map(|number| (format!("n{number}"), String::new()));
        assert!(Labels::parse(many.collect()).is_err());
    }

    #[test]
    fn a_change_sets_and_removes() {
        let labels = Labels::parse(pairs("zone", "eu")).unwrap();
        let changes = BTreeMap::from([
            ("zone".to_owned(), None),
            ("tier".to_owned(), Some("edge".to_owned())),
        ]);
        let changed = labels.merge(changes).unwrap();
        assert_eq!(*changed.pairs(), pairs("tier", "edge"));
    }
}
