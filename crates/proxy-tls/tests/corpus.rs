//! Replays the corpus of the fuzz target.

use proxy_testkit::replay;

#[path = "../fuzz/checks.rs"]
mod checks;

#[test]
fn client_hellos_of_the_corpus_are_read() {
    replay("client_hello", checks::client_hello);
}
