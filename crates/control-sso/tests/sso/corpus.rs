//! Replays the corpus of the fuzz target.

use proxy_testkit::replay;

#[path = "../../fuzz/checks.rs"]
mod checks;

#[test]
fn the_corpus_of_saml_responses_holds() {
    replay("saml_response", checks::saml_response);
}
