//! Figures on the project's size.

use super::graph::Graph;
use super::items;
use super::source::Source;
use super::tree::{File, Tree};
use crate::tidy::prose::ratchet;
use crate::tidy::structure::sizes;
use proxy_model::registry;

const LONGEST_FILES: usize = 5;

/// Formats one figure per line.
pub(super) fn table(tree: &Tree, graph: &Graph) -> String {
    let sizes = sizes::sizes(tree);
    let longest: Vec<String> = sizes
        .iter()
        .take(LONGEST_FILES)
        .map(|(lines, path)| format!("{path} {lines}"))
        .collect();
    let code: usize = tree
        .rust()
        .map(|(file, source)| product(file, source))
        .sum();
    let all: usize = tree.rust().map(|(_, source)| written(&source.code)).sum();
    let tests: usize = tree.rust().map(|(_, source)| tests_in(source)).sum();
    let mut figures = vec![
        ("crates", graph.members().count().to_string()),
        (
            "lines of code",
            format!("{code}, and {} of tests", all - code),
        ),
        (
            "files",
            format!("{}, median {} lines", sizes.len(), sizes::median(&sizes)),
        ),
        ("longest", longest.join(", ")),
        ("tests", tests.to_string()),
        ("settings", registry::all().len().to_string()),
        (
            "linked by proxyd",
            format!("{} packages", linked(graph, "proxyd")),
        ),
    ];
    figures.extend(ratchet::figures(tree));
    let lines = figures
        .iter()
        .map(|(name, figure)| format!("{name:<17} {figure}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn product(file: &File, source: &Source) -> usize {
    if file.is_test() {
        return 0;
    }
    source.code.get(..source.tests_start).map_or(0, written)
}

/// Counts the lines that contain code.
fn written(lines: &[String]) -> usize {
    lines.iter().filter(|line| !line.trim().is_empty()).count()
}

fn tests_in(source: &Source) -> usize {
    items::items(source)
        .iter()
        .filter(|item| item.is_test)
        .count()
}

fn linked(graph: &Graph, name: &str) -> usize {
    let package = graph.members().find(|package| package.name == name);
    package.map_or(0, |package| graph.reached(package).len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_separate_code_from_tests_and_comments() {
        let tree = Tree::from_files(&[
            (
                "crates/a/src/lib.rs",
                "//! A.\n\nfn a() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n",
            ),
            ("crates/a/tests/c.rs", "//! C.\n#[test]\nfn c() {}\n"),
        ]);
        let graph = Graph::ours(&[("proxyd", "bin", &["b"]), ("b", "", &[])]);

        let table = table(&tree, &graph);
        let figures: Vec<&str> = table
            .lines()
            .filter(|line| !line.starts_with("settings"))
            .collect();
        assert_eq!(
            figures,
            [
                "crates            1",
                "lines of code     1, and 7 of tests",
                "files             1, median 3 lines",
                "longest           crates/a/src/lib.rs 3",
                "tests             2",
                "linked by proxyd  1 packages",
                "people words      0 in 1 000 comment lines",
                "\"What\" openings   0 in 1 000 comment lines",
                "bare constants    0",
            ]
        );
    }
}
