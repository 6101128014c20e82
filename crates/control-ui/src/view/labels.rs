//! Labels as users enter them.

use std::collections::BTreeMap;

/// Parses labels such as `region:fra tier=edge`, separated by spaces, commas or line breaks.
///
/// # Errors
/// The first pair without a value.
pub(crate) fn read(text: &str) -> Result<BTreeMap<String, String>, String> {
    let pairs = text.split([' ', '\n', '\r', ',']);
    let pairs = pairs.filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once([':', '=']).ok_or_else(|| pair.to_owned())?;
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_people_write_them() {
        let labels = read("region:fra, tier=edge").unwrap();
        let pairs: Vec<(&str, &str)> = labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("region", "fra"), ("tier", "edge")]);
        assert!(read("").unwrap().is_empty());
        assert_eq!(read("region:a fra"), Err("fra".to_owned()));
    }
}
