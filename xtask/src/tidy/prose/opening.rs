//! Check: every Rust file begins with a `//!` sentence.

use crate::tidy::tree::Tree;
use crate::tidy::violation::Violation;

/// Returns the files without such a sentence.
pub(in crate::tidy) fn violations(tree: &Tree) -> Vec<Violation> {
    tree.rust()
        .filter(|(file, _)| {
            let first = file.text.lines().next().unwrap_or_default();
            first.strip_prefix("//! ").is_none_or(str::is_empty)
        })
        .map(|(file, _)| Violation::on_line(&file.path, 0, "must open with a `//!` sentence"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    #[test]
    fn a_file_opens_with_its_sentence() {
        let tree = Tree::from_files(&[
            ("a.rs", "//! Says it.\n"),
            ("b.rs", "use std::fmt;\n//! Late.\n"),
            ("c.rs", ""),
        ]);

        assert_eq!(
            rendered(&violations(&tree)),
            [
                "b.rs:1: must open with a `//!` sentence",
                "c.rs:1: must open with a `//!` sentence",
            ]
        );
    }
}
