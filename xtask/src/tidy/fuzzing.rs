//! Check: each fuzz target has a corpus, and a test of its crate that replays the corpus.

use super::items;
use super::tree::Tree;
use super::violation::Violation;

const TARGETS: &str = "fuzz/targets/";
/// Text before and after the crate's name in the path of a target's checks.
const CRATE: (&str, &str) = ("../../crates/", "/fuzz/checks.rs");
/// Prefix in calls of a check.
const CALL: &str = "checks::";
/// Texts in tests that read a corpus.
const REPLAYS: &[&str] = &["replay(", "corpus/"];

/// Returns the targets with a corpus that no test replays.
pub(super) fn violations(tree: &Tree) -> Vec<Violation> {
    let targets = tree
        .files
        .iter()
        .filter(|file| file.path.starts_with(TARGETS));
    let unplayed = targets.filter(|file| !is_replayed(tree, &file.text).unwrap_or(false));
    let what = "calls no check that a test of its crate replays a corpus through";
    unplayed
        .map(|file| Violation::whole(&file.path, what))
        .collect()
}

fn is_replayed(tree: &Tree, target: &str) -> Option<bool> {
    let (_, after) = target.split_once(CRATE.0)?;
    let (name, _) = after.split_once(CRATE.1)?;
    let (_, call) = target.split_once(CALL)?;
    let end = call.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let check = format!("{CALL}{}", call.get(..end)?);
    let folder = format!("crates/{name}/tests/");
    let mut tests = tree
        .rust()
        .filter(|(file, _)| file.path.starts_with(&folder));
    Some(tests.any(|(file, source)| {
        let mut tests = items::items(source).into_iter().filter(|item| item.is_test);
        tests.any(|item| {
            let text = items::text(file, source, &item);
            items::has_word(&text, &check) && REPLAYS.iter().any(|replay| text.contains(replay))
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    #[test]
    fn a_target_without_a_replay_is_reported() {
        let target =
            "#[path = \"../../crates/a/fuzz/checks.rs\"]\nmod checks;\nf(|t| checks::host(t));\n";
        let found = |test: &str| {
            let test = format!("#[test]\nfn it() {{\n    {test};\n}}\n");
            let files = [
                ("fuzz/targets/host.rs", target),
                ("crates/a/tests/b.rs", &test),
            ];
            rendered(&violations(&Tree::from_files(&files))).len()
        };
        assert_eq!(found("replay(\"host\", checks::host)"), 0);
        assert_eq!(found("replay(\"host\", checks::hosts)"), 1);
        assert_eq!(found("any(checks::host)"), 1);
    }
}
