//! Check: no function has a name that hides its result.

use crate::tidy::tree::Tree;
use crate::tidy::violation::Violation;

/// Returns functions with the name `of`.
pub(in crate::tidy) fn violations(tree: &Tree) -> Vec<Violation> {
    let lines = tree.rust().flat_map(|(file, source)| {
        let lines = source.code.iter().enumerate();
        lines.map(move |(index, line)| (file, index, line))
    });
    let found = lines.filter(|(_, _, line)| line.contains("fn of(") || line.contains("fn of<"));
    found
        .map(|(file, index, _)| {
            let what =
                "`of` names no result; call it `new`, `from_…` or `get`, or implement `From`";
            Violation::on_line(&file.path, index, what.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    #[test]
    fn a_function_called_of_is_refused() {
        let text = "// fn of(\nimpl A {\n    pub fn of<T>(a: T) -> Self { a }\n}\nfn offer() {}\n";
        assert_eq!(
            rendered(&violations(&Tree::from_files(&[("a.rs", text)]))),
            ["a.rs:3: `of` names no result; call it `new`, `from_…` or `get`, or implement `From`"]
        );
    }
}
