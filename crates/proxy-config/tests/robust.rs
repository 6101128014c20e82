//! No input makes the reader panic or abort; the fuzz target's corpus is replayed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

#[path = "../fuzz/checks.rs"]
mod checks;

use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new("../../fixtures").join(folder);
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Valid texts, to be damaged by [`damaged`].
fn texts() -> Vec<String> {
    let small = |text: &String| text.len() < 8_192;
    let texts = files("config/valid")
        .into_iter()
        .chain(files("config/migrate"));
    texts
        .map(|path| fs::read_to_string(path).unwrap())
        .filter(small)
        .collect()
}

#[test]
fn the_corpus_is_read_or_refused() {
    for path in files("corpus/config") {
        checks::config(&fs::read(path).unwrap());
    }
}

#[test]
fn every_fixture_is_read_or_refused() {
    for folder in ["valid", "invalid", "warnings", "migrate"] {
        for path in files(&format!("config/{folder}")) {
            checks::config(&fs::read(path).unwrap());
        }
    }
}

/// A valid text with a few pieces removed, doubled or replaced.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("\"".to_owned()),
        Just("\"\"\"\n".to_owned()),
        Just("/-".to_owned()),
        Just("/*".to_owned()),
        Just("\\".to_owned()),
        Just("#\"".to_owned()),
        Just(";".to_owned()),
        Just("=".to_owned()),
        Just("(u8)".to_owned()),
        Just("-1".to_owned()),
        Just("true".to_owned()),
        "[a-zé#\\x00-\\x20]{0,4}",
    ];
    let damage = (any::<prop::sample::Index>(), 0_usize..12, piece);
    let text = prop::sample::select(texts());
    (text, prop::collection::vec(damage, 1..4)).prop_map(|(text, damages)| {
        let mut bytes = text.into_bytes();
        for (at, cut, piece) in damages {
            let start = at.index(bytes.len() + 1);
            let end = (start + cut).min(bytes.len());
            bytes.splice(start..end, piece.into_bytes());
        }
        bytes
    })
}

proptest! {
    #[test]
    fn damaged_texts_are_read_or_refused(bytes in damaged()) {
        checks::config(&bytes);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        checks::config(&bytes);
    }

    #[test]
    fn any_characters_are_read_or_refused(text in "\\PC{0,100}") {
        checks::config(text.as_bytes());
    }
}
