//! Check: figures that may only decrease stay below their committed maxima.

use super::words::Words;
use crate::tidy::tree::Tree;
use crate::tidy::violation::Violation;
use serde::Deserialize;
use xtask_kit::task_error::TaskError;

/// File with the maxima.
const PAGE: &str = "xtask/ratchet.toml";
/// Maximum number of places that a violation lists.
const MAX_PLACES: usize = 10;

/// Contents of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Maxima {
    /// People words per thousand comment lines.
    people_words_per_mille: usize,
    /// Sentences that begin with "What" per thousand comment lines.
    what_openings_per_mille: usize,
    /// Constants with a name that has neither a noun nor a unit.
    bare_constants: usize,
}

/// Returns the current figures and their names.
pub(in crate::tidy) fn figures(tree: &Tree) -> Vec<(&'static str, String)> {
    let words = Words::count(tree);
    vec![
        (
            "people words",
            format!("{} in 1 000 comment lines", words.people_per_mille()),
        ),
        (
            "\"What\" openings",
            format!("{} in 1 000 comment lines", words.clauses_per_mille()),
        ),
        ("bare constants", words.bare_constants().to_string()),
    ]
}

/// Returns the figures above their maximum.
pub(in crate::tidy) fn violations(tree: &Tree) -> Result<Vec<Violation>, TaskError> {
    let text = tree.file(PAGE).map_or("", |file| &file.text);
    let maxima: Maxima =
        toml::from_str(text).map_err(|cause| TaskError::Failed(format!("{PAGE}: {cause}")))?;
    Ok(exceeded(tree, &maxima))
}

fn exceeded(tree: &Tree, maxima: &Maxima) -> Vec<Violation> {
    let Maxima {
        people_words_per_mille,
        what_openings_per_mille,
        bare_constants,
    } = maxima;
    let words = Words::count(tree);
    let mut violations = Vec::new();
    let people = words.people_per_mille();
    if people > *people_words_per_mille {
        let what = format!("{people} people words in 1 000 comment lines");
        violations.push(above(&what, *people_words_per_mille, &last(words.people())));
    }
    let clauses = words.clauses_per_mille();
    if clauses > *what_openings_per_mille {
        let what = format!("{clauses} sentences in 1 000 comment lines open with \"What\"");
        violations.push(above(
            &what,
            *what_openings_per_mille,
            &last(words.clauses()),
        ));
    }
    let constants = words.bare_constants();
    if constants > *bare_constants {
        let what = format!("{constants} constants without noun or unit");
        violations.push(above(&what, *bare_constants, &last(words.constants())));
    }
    violations
}

fn above(what: &str, most: usize, places: &str) -> Violation {
    Violation::whole(
        PAGE,
        format!("{what}; at most {most}, and never more again: {places}"),
    )
}

fn last(places: &[String]) -> String {
    let first = places.len().saturating_sub(MAX_PLACES);
    let shown = places.get(first..).unwrap_or_default().join(", ");
    if first == 0 {
        shown
    } else {
        format!("{first} more, {shown}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    fn tree() -> Tree {
        Tree::from_files(&[
            ("crates/a/src/b.rs", "//! Who.\nconst LONG: u8 = 1;\n"),
            ("crates/a/src/c.rs", "//! What C is.\n"),
        ])
    }

    #[test]
    fn figures_at_their_maximum_pass() {
        let maxima = Maxima {
            people_words_per_mille: 500,
            what_openings_per_mille: 500,
            bare_constants: 1,
        };
        assert_eq!(rendered(&exceeded(&tree(), &maxima)), [""; 0]);
    }

    #[test]
    fn figures_above_their_maximum_are_reported_with_their_places() {
        assert_eq!(
            rendered(&exceeded(&tree(), &Maxima::default())),
            [
                "xtask/ratchet.toml: 500 people words in 1 000 comment lines; at most 0, and never \
                 more again: crates/a/src/b.rs:1 who",
                "xtask/ratchet.toml: 500 sentences in 1 000 comment lines open with \"What\"; at \
                 most 0, and never more again: crates/a/src/c.rs:1",
                "xtask/ratchet.toml: 1 constants without noun or unit; at most 0, and never more \
                 again: crates/a/src/b.rs:2 LONG",
            ]
        );
    }

    #[test]
    fn a_file_without_a_maximum_is_refused() {
        assert!(violations(&Tree::from_files(&[(PAGE, "bare-constants = 1\n")])).is_err());
    }
}
