//! Check: crates have the workspace's lints, a licence, and a README with examples that are tests. The
//! root has the licence texts.

use crate::tidy::graph::Graph;
use crate::tidy::tree::Tree;
use crate::tidy::violation::Violation;

const LICENSE: &str = "MIT OR Apache-2.0";
/// Library that includes the READMEs as doctests.
const README_TESTS: &str = "readmes/src/lib.rs";
const LICENSE_FILES: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE"];

/// Returns crates that lack one of these.
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
        let tests = tree.file(README_TESTS).map_or("", |file| &file.text);
        if let Some(name) = package.folder.strip_prefix("crates/")
            && !tests.contains(&format!("\"{name}\""))
        {
            let what = format!("its README must be tested: add it to {README_TESTS}");
            faults.push(Violation::whole(&readme, what));
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
                "crates/proxy-tls/README.md: its README must be tested: add it to readmes/src/lib.rs",
            ]
        );
    }

    #[test]
    fn the_examples_of_each_readme_are_tests() {
        let found = |list: &str| {
            let tree = Tree::from_files(&[(README_TESTS, list)]);
            let graph = Graph::ours(&[("proxy-tls", "wire", &[])]);
            let violations = rendered(&violations(&tree, &graph));
            violations
                .iter()
                .any(|text| text.contains("its README must be tested"))
        };
        assert!(!found("proxy_tls: \"proxy-tls\",\n"));
        assert!(found("proxy_tls: \"proxy-tls-old\",\n"));
    }

    #[test]
    fn the_lints_table_is_found_anywhere() {
        let manifest = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n\n[dependencies]\n";
        assert!(takes_workspace_lints(manifest));
    }
}
