//! Check: the test runner has no retries, and tests that measure time run alone.

use super::items::has_word;
use super::tree::Tree;
use super::violation::Violation;

const PAGE: &str = ".config/nextest.toml";
/// Call in tests that must run alone.
const TURN: &str = "alone()";

/// Returns retries, and tests without the setting for running alone.
pub(super) fn violations(tree: &Tree) -> Vec<Violation> {
    let Some(settings) = tree.file(PAGE) else {
        return vec![Violation::whole(PAGE, "is missing")];
    };
    let mut violations = Vec::new();
    for (index, line) in settings.text.lines().enumerate() {
        let retried = line
            .split_once('=')
            .filter(|(name, value)| name.trim() == "retries" && value.trim() != "0");
        violations.extend(retried.map(|_| {
            let what = "tries tests again: one that fails at times hides a defect";
            Violation::on_line(PAGE, index, what)
        }));
    }
    let filters = || {
        let mut lines = settings.text.lines().collect::<Vec<_>>().into_iter().rev();
        let mut filters = Vec::new();
        while let Some(line) = lines.next() {
            if line.starts_with("threads-required") {
                filters.extend(lines.by_ref().find(|line| line.starts_with("filter")));
            }
        }
        filters
    };
    for (file, source) in tree.rust().filter(|(file, _)| file.is_test()) {
        let calls = |line: &String| line.contains(TURN) && !line.contains("fn ");
        let module = file
            .path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        let is_named = || filters().iter().any(|filter| has_word(filter, module));
        if source.code.iter().any(calls) && !is_named() {
            let what = format!("its tests call `{TURN}`, but {PAGE} does not run `{module}` alone");
            violations.push(Violation::whole(&file.path, what));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    const ALONE: &str = "filter = \"test(/^(slow|floods)::/)\"\nthreads-required = 2\n";
    const CALL: &str = "//! A.\nfn a() {\n    let _turn = alone();\n}\n";

    #[test]
    fn retries_are_a_fault() {
        let text = format!("[profile.default]\nretries = 2\n{ALONE}");
        assert_eq!(
            rendered(&violations(&Tree::from_files(&[(PAGE, &text)]))),
            [".config/nextest.toml:2: tries tests again: one that fails at times hides a defect"]
        );
        assert_eq!(
            rendered(&violations(&Tree::from_files(&[(PAGE, "retries = 0\n")]))),
            [""; 0]
        );
    }

    #[test]
    fn tests_that_measure_time_run_alone() {
        let tree = |name: &str| {
            let path = format!("a/tests/b/{name}.rs");
            rendered(&violations(&Tree::from_files(&[
                (PAGE, ALONE),
                (&path, CALL),
            ])))
            .len()
        };
        assert_eq!((tree("slow"), tree("fast")), (0, 1));
    }
}
