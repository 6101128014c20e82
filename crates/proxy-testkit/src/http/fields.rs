//! Header fields as received: in order, with the case of their names.

/// Header or trailer fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// The value of the only field with this name, ignoring case.
    #[must_use]
    #[track_caller]
    pub fn get(&self, name: &str) -> Option<&str> {
        let values = self.all(name);
        assert!(values.len() < 2, "{name} stands several times: {values:?}");
        values.first().copied()
    }

    /// The values of all fields with this name.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&str> {
        let named = self
            .0
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns true if there is a field of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        !self.all(name).is_empty()
    }

    /// Name and value of each field, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The names, in order and in lower case.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.iter()
            .map(|(name, _)| name.to_ascii_lowercase())
            .collect()
    }
}
