//! Properties that hold for any input; run by the fuzz target and by the replay of its corpus.

use proxy_migrate::{Language, Source, migrate};

/// Languages, selected by the first byte of the input.
pub(crate) const LANGUAGES: [Language; 4] = [
    Language::Nginx,
    Language::Caddy,
    Language::Haproxy,
    Language::Traefik,
];

/// Property: migrating any text succeeds or fails in the same way each time, with positions within
/// the text.
pub(crate) fn configuration(bytes: &[u8]) {
    let Some((first, text)) = bytes.split_first() else {
        return;
    };
    let Some(language) = LANGUAGES.get(usize::from(*first) % LANGUAGES.len()) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    check(*language, text);
}

/// Checks `text` in a known language.
pub(crate) fn check(language: Language, text: &str) {
    let source = Source {
        name: "in".to_owned(),
        text: text.to_owned(),
    };
    let lines = text.matches('\n').count() + 1;
    let is_within = |line: u32| line > 0 && usize::try_from(line).is_ok_and(|it| it <= lines);
    // Finds no files: an `include` of every file would read the text again.
    let read = || migrate(language, &source, &|_| None);
    match read() {
        Ok(migrated) => {
            for note in &migrated.notes {
                assert!(is_within(note.place.line), "{note} of {lines} lines");
                assert!(migrated.text.starts_with("// "), "{note}");
            }
            assert_eq!(read().as_ref(), Ok(&migrated), "{text}");
        }
        Err(error) => assert!(is_within(error.place.line), "{error} of {lines} lines"),
    }
}
