//! Replay of the fuzz targets' corpora.

use std::fs;
use std::path::Path;

/// Minimum number of files in any corpus: a folder with fewer was not found.
const MIN_CORPUS_FILES: usize = 20;

/// Runs `check` on every file of a folder under `fixtures/corpus`.
#[track_caller]
pub fn replay(corpus: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/corpus")
        .join(corpus);
    let files = fs::read_dir(&folder).expect("the corpus is a folder");
    let mut count = 0;
    for file in files {
        let path = file.expect("a folder can be listed").path();
        check(&fs::read(path).expect("a file can be read"));
        count += 1;
    }
    assert!(
        MIN_CORPUS_FILES <= count,
        "{count} files in {}",
        folder.display()
    );
}
