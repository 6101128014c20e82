//! Check: the tests that the threat model names exist.

use super::items;
use super::tree::Tree;
use super::violation::Violation;

const PAGE: &str = "docs/threat-model.md";
/// Names of test folders in the page, with their paths.
const PLACES: &[(&str, &str)] = &[
    ("agents", "bins/proxyd/tests/agents"),
    ("control plane", "bins/proxyd/tests/control_plane"),
    ("black box", "bins/proxyd/tests/black_box"),
    ("in process", "crates/proxy-server/tests/in_process"),
    ("edge", "bins/proxyd/tests/edge"),
    ("conformance", "bins/proxyd/tests/conformance"),
    ("controld", "bins/controld/tests"),
    ("fuzz", "fuzz/targets"),
];
/// Word instead of a proof, for a residual threat.
const RESIDUAL: &str = "residual";
/// Heading of the column with proofs.
const COLUMN: &str = "proof";

/// Returns proofs that are not tests, and threats without a proof.
pub(super) fn violations(tree: &Tree) -> Vec<Violation> {
    let Some(page) = tree.file(PAGE) else {
        return Vec::new();
    };
    let mut violations = Vec::new();
    let mut in_table = false;
    for (index, line) in page.text.lines().enumerate() {
        let cells: Vec<&str> = line
            .split(" | ")
            .map(|cell| cell.trim_matches(['|', ' ']))
            .collect();
        let last = cells.last().copied().unwrap_or_default();
        if !line.starts_with('|') {
            in_table = false;
        } else if last == COLUMN {
            in_table = true;
        } else if in_table && !line.starts_with("|--") {
            let faults = faults(tree, last);
            violations.extend(faults.map(|what| Violation::on_line(PAGE, index, what)));
        }
    }
    violations
}

/// Returns the faults of the proofs in one row.
fn faults(tree: &Tree, cell: &str) -> impl Iterator<Item = String> {
    let proofs = proofs(cell);
    let unproved = proofs.is_empty() && !cell.contains(RESIDUAL);
    let missing: Vec<String> = proofs
        .into_iter()
        .filter(|(place, name)| !is_proof(tree, place, name))
        .map(|(place, name)| {
            format!("names a proof that is not a test: {place} {name}").replace("  ", " ")
        })
        .collect();
    let unproved = unproved.then(|| "names no test and does not say `residual`".to_owned());
    unproved.into_iter().chain(missing)
}

/// Returns each name in backticks, with the test folder that the words before it name.
fn proofs(cell: &str) -> Vec<(String, String)> {
    let mut folder = String::new();
    let mut proofs = Vec::new();
    let mut pieces = cell.split('`').peekable();
    while let Some(prose) = pieces.next() {
        let words = PLACES
            .iter()
            .filter_map(|(word, path)| Some((prose.rfind(word)?, path)));
        if let Some((_, path)) = words.max_by_key(|(at, _)| *at) {
            (*path).clone_into(&mut folder);
        }
        let Some(name) = pieces.next() else { break };
        let after = pieces.peek().copied().unwrap_or_default();
        if name.contains('/') && after.starts_with(':') {
            folder = format!("crates/{name}");
        } else if name.contains('/') {
            proofs.push(("crates".to_owned(), name.to_owned()));
        } else {
            proofs.push((folder.clone(), name.to_owned()));
        }
    }
    proofs
}

/// Returns true for `module::test`, a file with tests, a fuzz target, or a file with cases for a
/// test in the same folder.
fn is_proof(tree: &Tree, folder: &str, name: &str) -> bool {
    let (module, test) = match name.rsplit_once("::") {
        Some((module, test)) => (module, Some(test)),
        None => (name, None),
    };
    let path = format!("{folder}/{}", module.replace("::", "/"));
    let path = path.strip_suffix(".rs").unwrap_or(&path);
    let file = tree.file(&format!("{path}.rs"));
    if folder == "fuzz/targets" {
        return file.is_some();
    }
    let source = file.and_then(|file| file.source.as_ref());
    let has_tests = source.is_some_and(|source| {
        let items = items::items(source);
        let mut tests = items.iter().filter(|item| item.is_test);
        tests.any(|item| test.is_none_or(|test| item.name == test))
    });
    has_tests || (source.is_some() && test.is_none() && is_gone_through(tree, path))
}

/// Returns true if a file in the same folder has tests, and uses the module of this file.
fn is_gone_through(tree: &Tree, path: &str) -> bool {
    let Some((folder, module)) = path.rsplit_once('/') else {
        return false;
    };
    let beside = |path: &str| {
        path.rsplit_once('/')
            .is_some_and(|(other, _)| other == folder)
    };
    let mut files = tree.rust().filter(|(file, _)| beside(&file.path));
    files.any(|(_, source)| {
        let tested = items::items(source).iter().any(|item| item.is_test);
        let path = format!("{module}::");
        tested && source.code.iter().any(|line| line.contains(&path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    const HEADING: &str = "| threat | what settles it | proof |\n|---|---|---|\n";
    const TEST: &str = "//! A.\n#[test]\nfn it_holds() {}\nfn helper() {}\n";

    fn found(row: &str) -> Vec<String> {
        let page = format!("{HEADING}| a | b | {row} |\n");
        let tree = Tree::from_files(&[
            (PAGE, &page),
            ("bins/proxyd/tests/black_box/paths.rs", TEST),
            ("bins/proxyd/tests/conformance/table.rs", TEST),
            ("crates/proxy-a/tests/robust.rs", TEST),
            ("crates/proxy-a/tests/framing/lines.rs", TEST),
            (
                "crates/proxy-a/tests/framing/cases.rs",
                "//! A.\nconst CASES: &[u8] = &[];\n",
            ),
            (
                "crates/proxy-a/tests/framing/unused.rs",
                "//! A.\nconst CASES: &[u8] = &[];\n",
            ),
            (
                "crates/proxy-a/tests/framing/all.rs",
                "//! A.\nuse super::cases::CASES;\n#[test]\nfn all() {}\n",
            ),
            ("fuzz/targets/host.rs", "//! A.\n"),
        ]);
        rendered(&violations(&tree))
    }

    #[test]
    fn tests_of_every_form_are_found() {
        for row in [
            "black box `paths::it_holds`; fuzz `host`",
            "beside a client, all of them in conformance `table`",
            "`proxy-a/tests/robust.rs::it_holds`; `proxy-a/tests/robust.rs`",
            "`proxy-a/tests/framing`: `lines`, `cases`",
            "residual, see below",
        ] {
            assert_eq!(found(row), [""; 0], "{row}");
        }
    }

    #[test]
    fn missing_places_and_other_functions_are_reported() {
        for row in [
            "black box `paths::it_fell`",
            "black box `paths::helper`",
            "edge `paths::it_holds`",
            "fuzz `hosts`",
            "`proxy-a/tests/framing`: `line`",
            "`proxy-a/tests/framing`: `unused`",
            "by reading",
        ] {
            assert_eq!(found(row).len(), 1, "{row}");
        }
    }
}
