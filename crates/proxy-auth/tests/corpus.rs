//! The fuzz target's corpus, replayed.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_testkit::replay;

#[path = "../fuzz/checks.rs"]
mod checks;

#[test]
fn tokens_of_the_corpus_are_refused() {
    replay("jwt_token", checks::jwt_token);
}

#[test]
fn the_token_of_the_issuer_is_accepted() {
    let genuine = include_bytes!("../../../fixtures/corpus/jwt_token/genuine");
    assert!(checks::verified(genuine).is_some());
}
