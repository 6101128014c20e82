//! Indexes for look-ups by name in constant time.

use crate::work;
use std::collections::{HashMap, HashSet};

/// Positions of a list's items by a key. [`Self::read`] adds items appended since the previous
/// call.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    by_key: HashMap<String, usize>,
    /// Next number to try for a name.
    numbers: HashMap<String, u32>,
    /// Number of items read so far.
    read: usize,
}

impl Positions {
    /// Indexes new items up to `count`. Of several items with a key, the first is kept.
    pub(crate) fn read<K: Into<String>>(&mut self, count: usize, key: impl Fn(usize) -> Option<K>) {
        for position in self.read..count {
            work::step();
            if let Some(key) = key(position) {
                self.by_key.entry(key.into()).or_insert(position);
            }
        }
        self.read = count;
    }

    /// Position of the item with this key.
    pub(crate) fn get(&self, key: &str) -> Option<usize> {
        work::step();
        self.by_key.get(key).copied()
    }

    /// An unused name: `wanted`, or else `wanted-2`, `wanted-3` and so on.
    pub(crate) fn free(&mut self, wanted: String) -> String {
        if self.get(&wanted).is_none() {
            return wanted;
        }
        let number = self.numbers.entry(wanted.clone()).or_insert(2);
        loop {
            work::step();
            let name = format!("{wanted}-{number}");
            if !self.by_key.contains_key(&name) {
                return name;
            }
            *number = number.saturating_add(1);
        }
    }
}

/// Certificates of listeners by their files, and the names of each.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    /// Positions by listener, certificate file and key file.
    positions: HashMap<(usize, String, String), usize>,
    names: HashSet<(usize, usize, String)>,
}

impl Certificates {
    /// Position of a listener's certificate, and whether it is new; a new one gets the position
    /// `next`.
    pub(crate) fn position(
        &mut self,
        listener: usize,
        cert: &str,
        key: &str,
        next: usize,
    ) -> (usize, bool) {
        work::step();
        let files = (listener, cert.to_owned(), key.to_owned());
        let known = self.positions.get(&files).copied();
        let position = *self.positions.entry(files).or_insert(next);
        (position, known.is_none())
    }

    /// Returns true if the listener's certificate did not have this name yet.
    pub(crate) fn is_new_name(&mut self, listener: usize, certificate: usize, name: &str) -> bool {
        work::step();
        self.names.insert((listener, certificate, name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_get_numbers_without_a_search_from_the_first() {
        let mut positions = Positions::default();
        let mut names: Vec<String> = Vec::new();
        let (steps, ()) = work::steps_of(|| {
            for _ in 0..1_000 {
                positions.read(names.len(), |at| names.get(at).map(String::as_str));
                names.push(positions.free("a".to_owned()));
            }
        });
        assert_eq!(names.last().map(String::as_str), Some("a-1000"));
        assert!(steps < 5_000, "{steps}");
    }
}
