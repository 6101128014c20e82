//! Check: the length of files is limited.

use crate::tidy::tree::Tree;
use crate::tidy::violation::Violation;

/// Maximum number of lines of a file, without its tests.
const MAX_LINES: usize = 600;
/// Maximum of the median number of lines.
const MAX_MEDIAN_LINES: usize = 150;

/// Returns files above the limit, and a median above its maximum.
pub(in crate::tidy) fn violations(tree: &Tree) -> Vec<Violation> {
    let sizes = sizes(tree);
    let mut faults: Vec<Violation> = sizes
        .iter()
        .filter(|(lines, _)| *lines > MAX_LINES)
        .map(|(lines, path)| {
            let what = format!("{lines} lines without tests; at most {MAX_LINES}, split by idea");
            Violation::whole(path, what)
        })
        .collect();
    let median = median(&sizes);
    if median > MAX_MEDIAN_LINES {
        let what = format!("the median file has {median} lines; at most {MAX_MEDIAN_LINES}");
        faults.push(Violation::whole("all files", what));
    }
    faults
}

/// Returns the number of lines without tests of each source file, longest first.
pub(in crate::tidy) fn sizes(tree: &Tree) -> Vec<(usize, &str)> {
    let mut sizes: Vec<(usize, &str)> = tree
        .rust()
        .filter(|(file, _)| !file.is_test())
        .map(|(file, source)| (source.tests_start, file.path.as_str()))
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes
}

pub(in crate::tidy) fn median(sizes: &[(usize, &str)]) -> usize {
    sizes.get(sizes.len() / 2).map_or(0, |(lines, _)| *lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    #[test]
    fn tests_do_not_count() {
        let code = "let a = 1;\n".repeat(600);
        let with_tests = format!("{code}#[cfg(test)]\nmod tests {{\n{code}}}\n");
        let too_long = format!("{code}let b = 2;\n");
        let tree = Tree::from_files(&[
            ("a/src/fits.rs", &with_tests),
            ("a/src/long.rs", &too_long),
            ("a/src/s1.rs", "//! Short.\n"),
            ("a/src/s2.rs", "//! Short.\n"),
            ("a/src/s3.rs", "//! Short.\n"),
            ("a/tests/all.rs", &too_long),
        ]);

        assert_eq!(
            rendered(&violations(&tree)),
            ["a/src/long.rs: 601 lines without tests; at most 600, split by idea"]
        );
    }

    #[test]
    fn a_long_median_is_a_fault() {
        let tree = Tree::from_files(&[("a/src/a.rs", &"a();\n".repeat(151))]);

        assert_eq!(
            rendered(&violations(&tree)),
            ["all files: the median file has 151 lines; at most 150"]
        );
    }
}
