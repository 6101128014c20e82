//! Normalization of paths, and refusal of ambiguous ones.

use proptest::prelude::{any, prop_assert, proptest};
use proxy_routing::{PathError, canonical_path, forgiving_path};
use proxy_testkit::replay;
use std::borrow::Cow;

#[path = "../fuzz/checks.rs"]
mod checks;

#[test]
fn paths_are_brought_into_one_form() {
    let cases = [
        ("", "/"),
        ("/", "/"),
        ("*", "*"),
        ("/a/b", "/a/b"),
        ("/%61%2Db%7e", "/a-b~"),
        ("/caf%c3%a9", "/caf%C3%A9"),
        ("/café", "/caf%C3%A9"),
        ("/a b", "/a%20b"),
        ("/a%20b", "/a%20b"),
        ("/a%3bb;c", "/a%3Bb;c"),
        ("/a%252fb", "/a%252fb"),
        ("/a//b", "/a//b"),
        ("//", "//"),
        ("/a/./b/../c", "/a/c"),
        ("/a/%2e/b/%2E%2e/c", "/a/c"),
        ("/a//../b", "/a/b"),
        ("/a/..", "/"),
        ("/a/b/..", "/a/"),
        ("/a/.", "/a/"),
        ("/./", "/"),
        ("/...", "/..."),
        ("/.a/..b/c.", "/.a/..b/c."),
    ];
    for (raw, expected) in cases {
        assert_eq!(canonical_path(raw).unwrap(), expected, "{raw}");
    }
}

#[test]
fn paths_with_two_meanings_are_refused() {
    let cases = [
        ("/a%2Fb", PathError::EncodedSlash),
        ("/a%2fb", PathError::EncodedSlash),
        ("/a%5Cb", PathError::Backslash),
        ("/a\\b", PathError::Backslash),
        ("/a%00", PathError::Nul),
        ("/a\0", PathError::Nul),
        ("/%zz", PathError::BadEscape),
        ("/%", PathError::BadEscape),
        ("/%4", PathError::BadEscape),
        ("/%+1", PathError::BadEscape),
        ("/..", PathError::LeavesRoot),
        ("/a/../..", PathError::LeavesRoot),
        ("/%2e%2e/etc", PathError::LeavesRoot),
        ("/.%2E/etc", PathError::LeavesRoot),
        ("/../a%2fb", PathError::EncodedSlash),
        ("a/b", PathError::NotAbsolute),
        ("http://a/", PathError::NotAbsolute),
    ];
    for (raw, expected) in cases {
        assert_eq!(canonical_path(raw), Err(expected), "{raw}");
    }
}

#[test]
fn a_forgiven_path_keeps_its_escapes_and_stops_at_the_root() {
    let cases = [
        ("/a%2fb/../c", "/c", PathError::EncodedSlash),
        ("/x/a%2f..", "/x/a%2F..", PathError::EncodedSlash),
        ("/a\\b", "/a%5Cb", PathError::Backslash),
        ("/a%00", "/a%00", PathError::Nul),
        ("/%zz", "/%25zz", PathError::BadEscape),
        ("/../../a", "/a", PathError::LeavesRoot),
        ("/%%32e%%32e/a", "/%252e%252e/a", PathError::BadEscape),
    ];
    for (raw, path, fault) in cases {
        assert_eq!(
            forgiving_path(raw),
            (Cow::Borrowed(path), Some(fault)),
            "{raw}"
        );
    }
}

#[test]
fn a_canonical_path_is_borrowed() {
    for raw in [
        "/",
        "/index.html",
        "/a/b%20c/%C3%A9;v=1",
        "//a",
        "*",
        "/.well-known/x",
    ] {
        assert!(
            matches!(canonical_path(raw), Ok(Cow::Borrowed(same)) if same == raw),
            "{raw}"
        );
    }
}

#[test]
fn the_corpus_holds() {
    replay("canonical_path", |bytes| {
        checks::canonical_path(&String::from_utf8_lossy(bytes));
    });
}

proptest! {
    #[test]
    fn any_text_has_one_form(text in any::<String>()) {
        checks::canonical_path(&text);
    }

    #[test]
    fn any_path_has_one_form(text in "(/(\\.|%2[eE]|%[0-9a-fA-F]{2}|[a-b/]|\\PC)*){0,6}") {
        checks::canonical_path(&text);
        prop_assert!(forgiving_path(&text).0.starts_with('/'));
    }
}
