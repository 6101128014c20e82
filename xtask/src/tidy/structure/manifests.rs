//! Every crate has the workspace's lints, the licence and a README, with its examples as tests; the root has the licence
//! texts.

use crate::tidy::graph::Graph;
use crate::tidy::tree::Tree;
use crate::tidy::violation::Violation;

const LICENSE: &str = "MIT OR Apache-2.0";
/// Line of a library that compiles its README as tests, up to its end.
const README_TESTS: &str = "doc = include_str!(\"../README.md\")";
const LICENSE_FILES: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE"];

/// Crates that lack one of them.
pub(in crate::tidy) fn violations(tree: &Tree, graph: &Graph) -> Vec<Violation> {
    let mut faults: Vec<Violation> = LICENSE_FILES
        .iter()
        .filter(|name| tree.file(name).is_none())
        .map(|name| Violation::whole(name, "is missing"))
        .collect();
    for package in graph.members() {
        let manifest = format!("{}/Cargo.toml", package.folder);
        let readme = format!("{}/README.md", package.folder);
        if package.license.as_deref() != Some(LICENSE) {
            let what = format!("must be licensed \"{LICENSE}\": license.workspace = true");
            faults.push(Violation::whole(&manifest, what));
        }
        let text = tree.file(&manifest).map_or("", |file| &file.text);
        if !takes_workspace_lints(text) {
            let what = "must take the workspace's lints: [lints] workspace = true";
            faults.push(Violation::whole(&manifest, what));
        }
        if tree.file(&readme).is_none() {
            faults.push(Violation::whole(&readme, "is missing"));
        }
        let library = format!("{}/src/lib.rs", package.folder);
        let is_of_crates = package.folder.starts_with("crates/");
        let text = tree.file(&library).filter(|_| is_of_crates);
        if text.is_some_and(|file| !file.text.contains(README_TESTS)) {
            let what =
                "must test its README: #![cfg_attr(doctest, doc = include_str!(\"../README.md\"))]";
            faults.push(Violation::whole(&library, what));
        }
    }
    faults
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim);
    lines.any(|line| line == "[lints]")
        && lines
            .take_while(|line| !line.starts_with('['))
            .any(|line| line == "workspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    #[test]
    fn a_bare_crate_lacks_everything() {
        let tree = Tree::from_files(&[
            ("LICENSE-MIT", ""),
            (
                "crates/proxy-tls/Cargo.toml",
                "[lints]\n[package]\nworkspace = true\n",
            ),
        ]);
        let graph = Graph::ours(&[("proxy-tls", "wire", &[])]);

        assert_eq!(
            rendered(&violations(&tree, &graph)),
            [
                "LICENSE-APACHE: is missing",
                "crates/proxy-tls/Cargo.toml: must be licensed \"MIT OR Apache-2.0\": \
                 license.workspace = true",
                "crates/proxy-tls/Cargo.toml: must take the workspace's lints: [lints] \
                 workspace = true",
                "crates/proxy-tls/README.md: is missing",
            ]
        );
    }

    #[test]
    fn a_library_compiles_its_readme() {
        let manifest = "[lints]\nworkspace = true\n";
        let library = "#![cfg_attr(doctest, doc = include_str!(\"../README.md\"))]\n";
        let found = |library: &str| {
            let tree = Tree::from_files(&[
                ("LICENSE-MIT", ""),
                ("LICENSE-APACHE", ""),
                ("crates/proxy-tls/Cargo.toml", manifest),
                ("crates/proxy-tls/README.md", ""),
                ("crates/proxy-tls/src/lib.rs", library),
            ]);
            let graph = Graph::ours(&[("proxy-tls", "wire", &[])]);
            let violations = rendered(&violations(&tree, &graph));
            violations
                .iter()
                .any(|text| text.contains("must test its README"))
        };
        assert!(!found(library));
        assert!(found("mod a;\n"));
    }

    #[test]
    fn the_lints_table_is_found_anywhere() {
        let manifest = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n\n[dependencies]\n";
        assert!(takes_workspace_lints(manifest));
    }
}
