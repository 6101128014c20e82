//! Names of files: relative paths that mean the same to every reader.

use crate::bounds::{MAX_DEPTH, MAX_NAME_BYTES};
use crate::error::{BundleError, NameError};
use std::collections::BTreeMap;

/// Capacity of a name field in the archive's header.
const MAX_PART_BYTES: usize = 100;
const SHOWN_CHARS: usize = 80;

/// Checks that `name` may be the name of a file in a bundle.
///
/// # Errors
///
/// [`BundleError::Name`] with the reason.
pub fn check_name(name: &str) -> Result<(), BundleError> {
    problem(name).map_or(Ok(()), |reason| Err(refused(name, reason)))
}

/// The error about a name; of a long one only the beginning is kept.
pub(crate) fn refused(name: &str, reason: NameError) -> BundleError {
    let name = shown(name);
    BundleError::Name { name, reason }
}

/// A name as an error shows it.
pub(crate) fn shown(name: &str) -> String {
    let chars = name.chars().map(|c| if c.is_control() { '?' } else { c });
    chars.take(SHOWN_CHARS).collect()
}

/// [`BundleError::Duplicate`] if a file has the path of another one's folder.
pub(crate) fn check_folders<T>(files: &BTreeMap<String, T>) -> Result<(), BundleError> {
    for name in files.keys() {
        let ends = name.match_indices('/').map(|(end, _)| end);
        let mut folders = ends.filter_map(|end| name.get(..end));
        if let Some(folder) = folders.find(|folder| files.contains_key(*folder)) {
            return Err(BundleError::Duplicate(shown(folder)));
        }
    }
    Ok(())
}

fn problem(name: &str) -> Option<NameError> {
    if name.is_empty() {
        return Some(NameError::Empty);
    }
    if name.len() > MAX_NAME_BYTES {
        return Some(NameError::TooLong);
    }
    if name.starts_with('/') {
        return Some(NameError::Absolute);
    }
    if name.contains(|c: char| c.is_control() || c == '\\') {
        return Some(NameError::Character);
    }
    if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Some(NameError::Dots);
    }
    if name.split('/').any(|part| part.len() > MAX_PART_BYTES) {
        return Some(NameError::TooLong);
    }
    (name.split('/').count() > MAX_DEPTH).then_some(NameError::TooDeep)
}
