//! Fixtures and their expected results.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of fixtures named `name`, relative to the crate, so that reports contain no machine's
/// path.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new("../../fixtures/config").join(name)
}

/// The `.kdl` files of a folder, sorted.
pub(crate) fn files(name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(name)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "kdl"));
    files.sort();
    assert!(!files.is_empty(), "no fixtures in {name}");
    files
}

/// Compares `actual` with the `.expected` file next to `path`. With `UPDATE_EXPECTED=1` in the
/// environment that file is written instead.
pub(crate) fn compare(path: &Path, actual: &str) -> Result<(), String> {
    let expected_file = path.with_extension("expected");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&expected_file, actual).unwrap();
        return Ok(());
    }
    let expected = fs::read_to_string(&expected_file).unwrap_or_default();
    if expected == actual {
        return Ok(());
    }
    Err(format!(
        "{}\n--- expected\n{expected}\n--- actual\n{actual}",
        expected_file.display()
    ))
}

/// Fails with all differences, not only with the first.
pub(crate) fn all(results: impl IntoIterator<Item = Result<(), String>>) {
    let wrong: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
