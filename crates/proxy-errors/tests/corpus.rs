//! Replays the fuzzers' corpora: what was worth keeping once must hold for ever.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::fs;
use std::path::Path;

#[path = "../fuzz/checks.rs"]
mod checks;

fn replay(corpus: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/corpus")
        .join(corpus);
    let mut files = 0;
    for file in fs::read_dir(&folder).unwrap() {
        check(&fs::read(file.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(20 <= files, "{files} files in {}", folder.display());
}

#[test]
fn the_corpus_of_accept_holds() {
    replay("accept", checks::accept);
}
