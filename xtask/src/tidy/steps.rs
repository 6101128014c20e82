//! The page on the life of a request names files and functions: each is there.
//!
//! A step is written as the file and behind it the functions, all in backticks:
//! `` `crates/proxy-server/src/accept.rs` `run`, `admit` ``.

use super::items::has_word;
use super::tree::Tree;
use super::violation::Violation;

const PAGE: &str = "docs/life-of-a-request.md";
/// What may stand between a file and its functions, and between two functions.
const JOINTS: &[&str] = &["", ",", "and", ", and", ":"];
/// What declares a name.
const KEYWORDS: &[&str] = &["fn", "struct", "enum", "trait", "const", "type"];

/// Files and functions that are named and are not there.
pub(super) fn violations(tree: &Tree) -> Vec<Violation> {
    let Some(page) = tree.file(PAGE) else {
        return Vec::new();
    };
    let mut violations = Vec::new();
    // A step may go over a line's end.
    let mut file: Option<&str> = None;
    for (index, line) in page.text.lines().enumerate() {
        let mut pieces = line.split('`');
        while let Some(prose) = pieces.next() {
            if !JOINTS.contains(&prose.trim()) {
                file = None;
            }
            let Some(name) = pieces.next() else { break };
            let what = if name.rsplit_once('.').is_some_and(|(_, end)| end == "rs") {
                file = Some(name);
                tree.file(name)
                    .is_none()
                    .then(|| format!("names a file that is not there: {name}"))
            } else {
                file.filter(|file| tree.file(file).is_some() && !declares(tree, file, name))
                    .map(|file| format!("names `{name}`, which {file} does not declare"))
            };
            violations.extend(what.map(|what| Violation::on_line(PAGE, index, what)));
        }
    }
    violations
}

fn declares(tree: &Tree, file: &str, name: &str) -> bool {
    let name = name.trim_end_matches("()");
    let name = name.rsplit("::").next().unwrap_or(name);
    let source = tree.file(file).and_then(|file| file.source.as_ref());
    let mut lines = source.into_iter().flat_map(|source| &source.code);
    lines.any(|line| {
        KEYWORDS
            .iter()
            .any(|word| has_word(line, &format!("{word} {name}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::told;

    fn found(page: &str) -> Vec<String> {
        let code = "//! A.\npub(crate) async fn run(x: u8) {}\nstruct Loop;\n// fn gone()\n";
        told(&violations(&Tree::of(&[
            (PAGE, page),
            ("crates/a/src/a.rs", code),
        ])))
    }

    #[test]
    fn files_and_functions_that_are_there_are_no_fault() {
        let page = "1. `crates/a/src/a.rs` `run()`, `Loop::run` and `Loop`.\n`crates/a/src/a.rs`\n   \
                    `run`; `anything` else is prose.\n";
        assert_eq!(found(page), [""; 0]);
    }

    #[test]
    fn what_is_not_there_is_told() {
        let page = "`crates/a/src/b.rs` `run`\n`crates/a/src/a.rs` `run`, `gone`\n";
        assert_eq!(
            found(page),
            [
                "docs/life-of-a-request.md:1: names a file that is not there: crates/a/src/b.rs",
                "docs/life-of-a-request.md:2: names `gone`, which crates/a/src/a.rs does not declare",
            ]
        );
    }
}
